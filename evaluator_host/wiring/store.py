"""Opens the database and what stands on it. SQLAlchemy and Alembic are imported late: `run` needs neither."""

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
    """Open what the host keeps: keys, records.

    Raises:
      Misconfigured: the database is not this version's, or its URL cannot be taken.
      StoreUnavailable: it does not answer.
    """
    from evaluator_host.store import store  # noqa: PLC0415 - SQLAlchemy and Alembic, which `run` never needs

    async with store.open_store(
        revealed(settings.database_url), settings.data_dir, secrets_key=revealed(settings.secrets_key)
    ) as opened:
        yield opened


@asynccontextmanager
async def open_stored_resources(service: Service, store: "Store") -> AsyncIterator["StoredResources"]:
    """Open the verbs over what is stored, and work on jobs; those at work are left for the next host on the way out.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    from evaluator_host.jobs import open as opening  # noqa: PLC0415 - as above

    async with opening.open_stored_resources(service, store) as resources:
        yield resources


async def database_finding(settings: Settings) -> Finding:
    """Return what `doctor` says of the database and of whose the rows and files are; never raises."""
    from evaluator_host.jobs import open as opening  # noqa: PLC0415 - as above
    from evaluator_host.store import address, store  # noqa: PLC0415 - as above

    url = revealed(settings.database_url)
    try:
        async with store.open_read_only(url, settings.data_dir) as found:
            return await opening.orphan_files(settings).finding(found, address.address(url, settings.data_dir))
    except (HostError, OSError) as error:
        return Finding("database", ok=False, detail=str(error))
