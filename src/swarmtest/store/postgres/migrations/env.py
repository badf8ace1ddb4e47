"""The Alembic environment: runs the scripts of `versions` on the configured connection."""

from __future__ import annotations

from alembic import context

# Alembic sets `config` when it runs this file; a plain import finds none.
if hasattr(context, "config"):
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
