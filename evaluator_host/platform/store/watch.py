"""Checks a host's database before the host starts, and watches it while the host runs."""

import asyncio
import logging
import sqlite3
import tempfile
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, Final

from evaluator_host.platform.store.database import Address, Database, damaged, file_facts, translated
from evaluator_host.types.errors import StoreUnavailable

# folder of a data directory with a note about each database that uses it, see `datasets.orphan_files`
NOTES: Final = "databases"
_LOOK_EVERY_S: Final = 2.0
_LOOK_S: Final = 30.0  # seconds that a check may take, because a busy machine may delay the host or the database

_log = logging.getLogger(__name__)


class DatabaseWatch:
    """Checks a database every two seconds, and logs when it stops working and when it works again.

    If a SQLite file is removed or replaced while the host runs, the host does not use the database until the file is
    back. Otherwise it would write to the removed file.

    Args:
      database: The host's database; its `lost` is set here.
      kept: The same database, with connections that requests do not use.
    """

    def __init__(self, database: Database, kept: Database) -> None:
        self.problem: str | None = None  # why the database does not work, or None if it works
        self._databases = (database, kept)
        self._address = database.address
        self._file = _identity(self._address.file)
        self._mark: tuple[Any, ...] | None = None  # fingerprint of the file when it was last read

    async def run(self) -> None:
        """Check the database every two seconds until cancelled."""
        while True:
            problem = await self._look()
            if problem != self.problem:
                if problem is None:  # old connections may have cached pages of a damaged file, so they are closed
                    for one in self._databases:
                        await one.close()
                _log.error("%s", problem) if problem else _log.info("the database %s works again", self._address)
            self.problem = problem
            await asyncio.sleep(_LOOK_EVERY_S)

    def require_serving(self) -> None:
        """Check that the database worked at the last check of `run`.

        Raises:
          StoreUnavailable: the database did not work.
        """
        if self.problem is not None:
            raise StoreUnavailable(self.problem)

    async def _look(self) -> str | None:
        now = _identity(self._address.file)
        lost = None
        if now != self._file:
            lost = f"the database {self._address} was {'replaced' if now else 'removed'} while this host used it"
            lost += "; nothing is read or written until the host is started again, or the file is back"
        for one in self._databases:
            one.lost = lost
        mark = self._databases[0].mark()
        if self.problem is None and lost is None and mark is not None and mark == self._mark:
            return None  # nobody has written to the file
        self._mark = None
        try:
            async with asyncio.timeout(_LOOK_S):
                if (file := self._address.file) is not None:
                    if not await asyncio.to_thread(_read_file, self._address, file):
                        raise damaged(file, "it is empty")
                    self._mark = mark
                else:
                    await self._databases[1].require_writable()
        except StoreUnavailable as error:
            return lost or error.detail
        except TimeoutError:
            return lost or f"the database {self._address} did not answer within {_LOOK_S:g} s"
        return lost


def _identity(file: Path | None) -> tuple[int, int] | None:
    """Return a value that identifies a file and stays the same when the file is renamed. None if there is no file."""
    found = file_facts(file) if file else None
    return found and (found.st_dev, found.st_ino)


def _read_file(address: Address, file: Path) -> int:
    """Read one row of every table in a SQLite file, and return the number of tables.

    Use a new connection, which has no cached pages.

    Raises:
      StoreUnavailable: the file is damaged, or cannot be read.
    """
    with translated(address), closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in names:
            connection.execute(f'SELECT * FROM "{name}" LIMIT 1').fetchall()  # noqa: S608 - a name from the file itself
    return len(names)


def require_not_emptied(address: Address, data_dir: Path) -> None:
    """If a SQLite file is empty, check that it is new.

    An interrupted copy or a full disk can empty a file that was used before.

    Raises:
      StoreUnavailable: the file is empty, but a host of this data directory has used it.
    """
    if (file := address.file) is None or (found := file_facts(file)) is None or found.st_size:
        return
    for note in (data_dir / NOTES).glob("[!.]*"):
        if note.read_text(errors="replace") == str(address):
            raise damaged(file, "the file is empty, though a host has used it (to begin again, remove the file)")


def require_usable(address: Address) -> None:
    """Check that a SQLite file can be read and written, or created. Does nothing for PostgreSQL. Blocking.

    Raises:
      StoreUnavailable: the file cannot be used; the detail says what to do.
    """
    if (file := address.file) is None:
        return
    with translated(address):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            for part in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
                with part.open("r+b") if part.exists() else nullcontext():
                    pass
        if file.exists():
            _read_file(address, file)
