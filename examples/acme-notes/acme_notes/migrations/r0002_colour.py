import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("acme_notes", sa.Column("colour", sa.Text, nullable=False, server_default="yellow"))
