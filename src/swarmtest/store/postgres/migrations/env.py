"""What Alembic runs: the scripts of `versions`, on the connection that it was given."""

from __future__ import annotations

from alembic import context

# `config` is there when Alembic runs this, and not when somebody else imports it.
if hasattr(context, "config"):
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
