"""Removes rows and files from a data directory if the database of the host does not refer to them.

A host leaves a note about its database in its data directory: a file `databases/<identity>` that contains the
database's address. The host removes files only if there is no note about another database. A directory from an older
version has no notes. Before the first database leaves its note there, the host looks for rows and files to which that
database does not refer. If there are any, the host also writes a note named `unknown`.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.system.files import write_once
from evaluator_host.platform.datasets.files import FileFolder, RowsFolder
from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.plugins import plugins
from evaluator_host.platform.store.database import Address
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.store.watch import NOTES
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import size_text

_FINDING: Final = "rows and files"
_LISTED: Final = 5

_log = logging.getLogger(__name__)


class OrphanFiles:
    """Removes unreferenced files from the data directory of one database."""

    def __init__(self, data_dir: Path, rows: RowsFolder, blobs: FileFolder) -> None:
        self._data_dir = data_dir
        self._notes = data_dir / NOTES
        self.rows = rows
        self.blobs = blobs
        self._has_warned = False  # whether a warning was logged that other databases share the folder

    async def sweep(self, store: Store) -> None:
        """Remove unreferenced files: broken uploads, and rows of deleted jobs.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        await Datasets(store.database).forget_unused(remove=self.rows.remove)
        identity, known = await _known(store)
        await asyncio.to_thread(self._sweep, known, identity, store.database.address)

    async def finding(self, store: Store | None, address: Address) -> Finding:
        """Return the `doctor` finding about unreferenced files and files of other databases.

        `store` is None until a host has used the database.

        Raises:
          StoreUnavailable: the database does not answer.
          OSError: the data directory cannot be read.
        """
        identity, known = await _known(store) if store else ("", frozenset[str]())
        missing = await asyncio.to_thread(self.rows.missing, await Datasets(store.database).ids()) if store else ()
        if missing:
            return Finding(
                _FINDING,
                ok=False,
                detail=f"the rows of {counted(len(missing), 'data set')} of {address} are not in {self._data_dir}: "
                "jobs that use these data sets wait for the host that has the rows",
                fix="let all hosts of the database share their data directory or EVALUATOR_HOST_STORAGE_URL; after a "
                "restore, also restore the folders from the same backup",
            )
        return await asyncio.to_thread(self._finding, known, identity, address)

    def _sweep(self, known: frozenset[str], identity: str, address: Address) -> None:
        try:
            self._note(known, identity, address)
            others = self._others(identity)
        except OSError as error:
            _log.warning(
                "rows and files in %s that the database %s does not list are kept, because its notes there cannot be "
                "used: %s",
                self._data_dir,
                address,
                error,
            )
            return
        if others and self._has_warned:
            return
        if others:
            self._has_warned = True
            _log.warning(
                "other databases use %s too, or used it before (%d databases): rows and files there are kept, "
                "even if the database %s does not list them; `evaluator-host doctor` says what to do",
                self._data_dir,
                len(others),
                address,
            )
            return
        for leftover in self.rows.orphans(known):
            _log.info("removing the rows of %s, because nothing refers to them", leftover)
            self.rows.remove(leftover)
        self.blobs.sweep(known)

    def _note(self, known: frozenset[str], identity: str, address: Address) -> None:
        """Write the note about this database. The note must exist before the first file of this database is stored."""
        if not self._notes.is_dir() and not known.issuperset((*self.rows.ids(), *self.blobs.ids())):
            write_once(self._notes / "unknown", b"used before databases were noted")
        write_once(self._notes / identity, str(address).encode())

    def _others(self, identity: str) -> list[str]:
        """Return the names of the notes about other databases. Skip unfinished notes, which have a dot in the name."""
        found = self._notes.iterdir() if self._notes.is_dir() else ()
        return sorted(path.name for path in found if "." not in path.name and path.name != identity)

    def _finding(self, known: frozenset[str], identity: str, address: Address) -> Finding:
        others = self._others(identity)
        if not others:
            return Finding(
                _FINDING, ok=True, detail=f"all rows and files in {self._data_dir} belong to the database {address}"
            )
        listed = [f"{name}: {(self._notes / name).read_text(errors='replace')}" for name in others[:_LISTED]]
        listed += [f"and {len(others) - _LISTED} more"] if len(others) > _LISTED else []
        rows = [self.rows.size_bytes(one) for one in self.rows.ids() if one not in known]
        files = [self.blobs.file(one).stat().st_size for one in self.blobs.ids() if one not in known]
        return Finding(
            _FINDING,
            ok=False,
            detail=f"other databases use {self._data_dir} too, or used it before ({'; '.join(listed)}). "
            f"{counted(len(rows), 'data set')} "
            f"and {counted(len(files), 'file')} ({size_text(sum(rows + files))}) are "
            f"kept there, although {address} does not list them",
            fix="check EVALUATOR_HOST_DATABASE_URL, and give every database its own data directory. Once nobody needs "
            f"the data of another database, remove its note from {self._notes}. When there are no notes of other "
            "databases left, the next host that starts removes the rows and files that its own database does not list",
        )


async def _known(store: Store) -> tuple[str, frozenset[str]]:
    """Return the identity of a database, and the ids of its rows and files."""
    known = set(await Datasets(store.database).ids())
    for plugin in plugins().values():
        if plugin.stored_files is not None:
            known |= await plugin.stored_files.load()(store.database)
    return await store.identity(), frozenset(known)
