"""Values of Postgres' types, written and read in text and in binary, by the type's OID."""
