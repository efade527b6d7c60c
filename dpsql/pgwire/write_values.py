"""Values in Postgres' binary format."""
