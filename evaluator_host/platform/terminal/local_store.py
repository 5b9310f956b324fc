"""Opens a host's database for commands that run on the same machine."""

import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from evaluator_host.engine.config.settings import SETS_FOLDER, Settings, revealed
from evaluator_host.platform.store.opening import open_store
from evaluator_host.platform.terminal.command import run_async
from evaluator_host.types.errors import InvalidRequest, Misconfigured

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

T = TypeVar("T")

_NAME_IT: Final = "give the host's data directory with --data-dir or EVALUATOR_HOST_DATA_DIR"


def require_data(settings: Settings) -> None:
    """Check that a host has stored data in the database of these settings. A PostgreSQL server is not contacted.

    Raises:
      InvalidRequest: the file of the database does not exist.
    """
    from evaluator_host.platform.store.database import address  # noqa: PLC0415 - `--help` needs no SQLAlchemy

    file = address(revealed(settings.database_url), settings.data_dir).file
    if file is not None and not file.exists():
        raise InvalidRequest(f"no host has stored data in {file.parent}: {file.name} does not exist; {_NAME_IT}")


def require_own_folder(settings: Settings) -> None:
    """If this process runs as root, check that the folder of the database does not belong to another user.

    Raises:
      Misconfigured: this process runs as root, and the folder belongs to another user.
    """
    from evaluator_host.platform.store.database import address  # noqa: PLC0415 - as above

    file = address(revealed(settings.database_url), settings.data_dir).file
    if os.geteuid() != 0 or file is None or file.exists():
        return
    folder = next(one for one in file.parents if one.exists())
    if (number := folder.stat().st_uid) == 0:
        return
    try:
        owner = folder.owner()
    except KeyError:  # the owner's user id has no user name
        owner = f"'#{number}'"
    raise Misconfigured(
        f"{folder} belongs to the user {owner}, whose host could not open a database that root makes there; run this "
        f"as that user: sudo -u {owner} {sys.executable} -m evaluator_host … --data-dir {settings.data_dir}"
    )


def require_package_sets(settings: Settings) -> None:
    """Check that a host or a command has kept package sets in the data directory.

    Raises:
      InvalidRequest: the data directory has no folder of package sets.
    """
    folder = settings.data_dir / SETS_FOLDER
    if not folder.is_dir():
        raise InvalidRequest(
            f"there are no package sets in {settings.data_dir}: the folder {folder.name} does not exist; {_NAME_IT}"
        )


def with_store(settings: Settings, work: "Callable[[Store], Awaitable[T]]", *, may_be_new: bool = False) -> T:
    """Open the database in these settings, run `work` with it, and return the result.

    Args:
      settings: Settings of the host.
      work: Function that reads or changes the database.
      may_be_new: Whether to create the database if there is none.

    Raises:
      InvalidRequest: there is no database, and `may_be_new` is not set.
      Misconfigured: root would create the database in a folder of another user, whose host could not open it.
    """
    if may_be_new:
        require_own_folder(settings)
    else:
        require_data(settings)

    async def run() -> T:
        async with open_store(settings) as store:
            return await work(store)

    return run_async(run)
