"""The PostgreSQL schema and how it changed: Alembic's scripts, one per schema version."""
