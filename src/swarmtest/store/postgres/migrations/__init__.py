"""The Alembic scripts that create and upgrade the tables of a PostgreSQL store."""
