"""Uploads, lists, reads and deletes data sets. An upload is read once and stored as JSON lines."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final

from evaluator_host.datasets.files import RowsFolder, at_most
from evaluator_host.datasets.format import Format
from evaluator_host.datasets.readers import read_records
from evaluator_host.model.errors import MachineExhausted
from evaluator_host.model.evaluator import Json
from evaluator_host.schemas.stored import DatasetReport
from evaluator_host.store.datasets import Dataset, DatasetFacts, Datasets, name_taken, new_dataset_id
from evaluator_host.store.usage import StorageUsage
from evaluator_host.store.workspaces import require_name

_PART_BYTES: Final = 64 << 10
_AT_ONCE: Final = 2  # uploads read at a time; more would share the same cores


class DatasetService:
    """The data sets of one host.

    Args:
      store: Names and facts of data sets.
      folder: The rows of all data sets.
      max_bytes: Size limit of an upload, and of a data set.
      usage: Checks whether a workspace may store more.
      max_row_bytes: Size limit of a row.
    """

    def __init__(
        self, store: Datasets, folder: RowsFolder, usage: StorageUsage, *, max_bytes: int, max_row_bytes: int
    ) -> None:
        self._store = store
        self._folder = folder
        self._usage = usage
        self._max_bytes = max_bytes
        self._max_row_bytes = max_row_bytes
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def add_dataset(
        self, workspace_id: str, name: str, chunks: AsyncIterator[bytes], format_: Format, *, replace: bool = False
    ) -> DatasetReport:
        """Store the rows of a file that arrives in chunks, without the whole file in memory.

        Args:
          workspace_id: Owner of the data set.
          name: Letters, digits, dots, dashes and underscores.
          chunks: Chunks of the file.
          format_: Format of the file.
          replace: Take the name from the data set that has it; jobs over that data set keep its rows.

        Raises:
          InvalidRequest: the name is not valid, or the file has another format or no row.
          NameTaken: there is a data set of that name, and `replace` is not set.
          TooLarge: the file is over this host's limit.
          OverQuota: the workspace stores as much as it may.
          MachineExhausted: this machine has too little free disk.
        """
        require_name(name, "data set")
        if not replace and any(one.name == name for one in await self._store.list_datasets(workspace_id)):
            raise name_taken(name)
        with MachineExhausted.refused("store the data set"), self._folder.temporary_file() as upload:
            async for chunk in at_most(self._max_bytes, self._usage.metered(workspace_id, chunks)):
                await asyncio.to_thread(upload.write, chunk)
            upload.seek(0)
            dataset_id = new_dataset_id()
            async with self._turns:
                facts = await asyncio.to_thread(self._write, dataset_id, upload, format_)
        try:
            made = await self._store.add_dataset(dataset_id, workspace_id, name, facts, replace=replace)
        except BaseException:
            await asyncio.to_thread(self._folder.remove, dataset_id)
            raise
        await self._forget_unused()
        return _report(made)

    async def add_unnamed(self, workspace_id: str, records: Iterable[dict[str, Json]], format_: str) -> DatasetReport:
        """Store rows for a job that is about to be created; reads them in a thread.

        Raises:
          InvalidRequest: there is no row.
          TooLarge: the rows are over this host's limit.
        """
        await self._usage.require_room(workspace_id)
        dataset_id = new_dataset_id()
        numbered = enumerate(records, start=1)
        async with self._turns:
            facts = await asyncio.to_thread(
                self._folder.write, dataset_id, numbered, format_=format_, max_bytes=self._max_bytes
            )
        return _report(await self._store.add_dataset(dataset_id, workspace_id, None, facts))

    async def get_dataset(self, workspace_id: str, name: str) -> DatasetReport:
        """Return a data set by its name or id.

        Raises:
          NotFound: the workspace has no such data set.
        """
        return _report(await self._store.get_dataset(workspace_id, name))

    async def list_datasets(self, workspace_id: str) -> list[DatasetReport]:
        """Return the data sets of a workspace, the newest first."""
        return [_report(dataset) for dataset in await self._store.list_datasets(workspace_id)]

    async def rows(self, workspace_id: str, name: str, first: int, *, limit: int) -> list[dict[str, Json]]:
        """Return at most `limit` rows of a data set, from row `first` on, and fewer when these have 16 MB.

        Raises:
          NotFound: the workspace has no such data set.
        """
        dataset = await self._store.get_dataset(workspace_id, name)
        return await asyncio.to_thread(self._folder.page, dataset.id, first, limit=limit)

    async def rows_json(self, workspace_id: str, name: str, first: int, *, limit: int) -> Iterator[bytes]:
        """Return the parts of a JSON array of at most `limit` rows, from row `first` on; blocking, one row in memory.

        Raises:
          NotFound: the workspace has no such data set.
        """
        dataset = await self._store.get_dataset(workspace_id, name)
        lines = islice(self._folder.lines(dataset.id, first=first), limit)
        rows = ((b"," if place else b"") + line for place, (_, line) in enumerate(lines))
        return _joined(chain((b"[",), rows, (b"]",)))

    async def path(self, workspace_id: str, name: str) -> Path:
        """Return the path of a data set's rows as JSON lines.

        Raises:
          NotFound: the workspace has no such data set.
        """
        return self._folder.file((await self._store.get_dataset(workspace_id, name)).id)

    async def delete_dataset(self, workspace_id: str, name: str) -> None:
        """Delete a data set; its rows are kept as long as a job needs them.

        Raises:
          NotFound: the workspace has no such data set.
        """
        await self._store.release(workspace_id, name)
        await self._forget_unused()

    def _write(self, dataset_id: str, upload: BinaryIO, format_: Format) -> DatasetFacts:
        records = read_records(upload, format_, max_row_bytes=self._max_row_bytes)
        return self._folder.write(dataset_id, records, format_=format_, max_bytes=self._max_bytes)

    async def _forget_unused(self) -> None:
        for dataset_id in await self._store.forget_unused():
            await asyncio.to_thread(self._folder.remove, dataset_id)


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in fewer parts."""
    held, size = [], 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= _PART_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _report(dataset: Dataset) -> DatasetReport:
    facts = dataset.facts
    return DatasetReport(
        name=dataset.name or dataset.id,
        id=dataset.id,
        format=facts.format,
        rows=facts.rows,
        bad_row_count=facts.bad_rows,
        bad_rows=facts.bad_lines,
        columns=facts.columns,
        size_bytes=facts.size_bytes,
        digest=facts.digest,
        created_at=dataset.created_at,
    )
