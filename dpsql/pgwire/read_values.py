"""A bound parameter's bytes -> its value, in text or in Postgres' binary format."""
