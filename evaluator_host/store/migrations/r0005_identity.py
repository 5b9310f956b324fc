"""A name that tells a database from every other one, its own copies apart."""

import secrets
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final = "0004"


def upgrade() -> None:
    """Make the table and the name."""
    made = op.create_table(
        "database_identity",
        sa.Column("id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_database_identity"),
    )
    op.bulk_insert(made, [{"id": f"db-{secrets.token_hex(12)}"}])
