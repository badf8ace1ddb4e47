"""The migration scripts, one for each version of the schema."""
