"""Opens the database. SQLAlchemy and Alembic are imported only when it is opened: `run` does not need them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evaluator_host.engine.config.settings import Settings, revealed

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator["Store"]:
    """Open the host's database, and yield its store.

    Raises:
      Misconfigured: a newer version has used the database, or its URL is invalid.
      StoreUnavailable: the database does not answer.
    """
    from evaluator_host.platform.store import store, usage  # noqa: PLC0415 - SQLAlchemy, which `run` never needs

    limits = settings.workspace_limits
    own_bytes = {name: one.workspace_mb << 20 for name, one in limits.items() if one.workspace_mb is not None}
    quota = usage.Quota(settings.workspace_mb << 20, settings.free_disk_mb << 20, settings.data_dir, own_bytes)
    async with store.open_store(
        revealed(settings.database_url),
        settings.data_dir,
        secrets_key=revealed(settings.secrets_key),
        quota=quota,
        limits=limits,
    ) as opened:
        yield opened
