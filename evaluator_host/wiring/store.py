"""Opens the database and the services that use it. Imports SQLAlchemy and Alembic late: `run` needs neither."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evaluator_host.config.settings import Settings, revealed
from evaluator_host.model.errors import HostError
from evaluator_host.sandbox.base import Finding
from evaluator_host.service import Service

if TYPE_CHECKING:
    from evaluator_host.jobs.open import StoredResources
    from evaluator_host.store.store import Store


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator["Store"]:
    """Open the host's database.

    Raises:
      Misconfigured: the database belongs to another version, or its URL is invalid.
      StoreUnavailable: it does not answer.
    """
    from evaluator_host.store import store, usage  # noqa: PLC0415 - SQLAlchemy and Alembic, which `run` never needs

    quota = usage.Quota(settings.workspace_mb << 20, settings.free_disk_mb << 20, settings.data_dir)
    async with store.open_store(
        revealed(settings.database_url), settings.data_dir, secrets_key=revealed(settings.secrets_key), quota=quota
    ) as opened:
        yield opened


@asynccontextmanager
async def open_stored_resources(service: Service, store: "Store") -> AsyncIterator["StoredResources"]:
    """Open the services over the database and run jobs; at the end, release unfinished jobs to the next host.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    from evaluator_host.jobs import open as opening  # noqa: PLC0415 - as above

    async with opening.open_stored_resources(service, store) as resources:
        yield resources


async def database_finding(settings: Settings) -> Finding:
    """Return the `doctor` finding about the database and its files; never raises."""
    from evaluator_host.jobs import open as opening  # noqa: PLC0415 - as above
    from evaluator_host.store import database, store  # noqa: PLC0415 - as above

    url = revealed(settings.database_url)
    try:
        async with store.open_read_only(url, settings.data_dir) as found:
            return await opening.orphan_files(settings).finding(found, database.address(url, settings.data_dir))
    except (HostError, OSError) as error:
        return Finding("database", ok=False, detail=str(error))
