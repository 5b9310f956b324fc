"""Uploads, lists, reads and deletes data sets. An upload is read once and stored as JSON lines."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.limited_process import CallLimits, LimitedProcesses
from evaluator_host.engine.system.memory import Reservation
from evaluator_host.engine.system.tree import remove
from evaluator_host.platform.datasets.files import RowLimits, RowsFolder, at_most, write_rows, write_upload
from evaluator_host.platform.datasets.queries import (
    Condition,
    compare_rows,
    describe_columns,
    edit_rows,
    encode_edits,
    encoded_answer,
    search_rows,
)
from evaluator_host.platform.datasets.readers import modules_of
from evaluator_host.platform.datasets.suggestion import expected_column, output_column
from evaluator_host.platform.datasets.table import Dataset, Datasets, name_taken, new_dataset_id
from evaluator_host.platform.store.usage import StorageUsage, Storing
from evaluator_host.platform.store.workspaces import require_name
from evaluator_host.types.errors import InUse, MachineExhausted, NameTaken, NotFound, StoreUnavailable, TooLarge
from evaluator_host.types.evaluator import Json
from evaluator_host.types.formats import Format
from evaluator_host.types.stored import DatasetFacts, DatasetReport

_MB: Final = 1 << 20
_UPLOAD: Final = "upload"
_HELD_BYTES: Final = 1 << 20  # maximum number of bytes of an upload that may wait for the thread that writes them
_CPU_S: Final = 30  # processor time that a file may take, in seconds; one second is added for each MB
_MEMORY_MB: Final = 512
# maximum bytes of memory per byte of JSON: an empty list with its comma has 3 bytes, and takes about 64 in memory
_MEMORY_PER_ROW: Final = 32
_read_facts: Final = Adapter(DatasetFacts).read
_PART_BYTES: Final = 64 << 10
_QUERY_S: Final = 10
_EDITED_BYTES: Final = 64 * _MB
_ROWS_BYTES: Final = 16 * _MB
_MOST_GUESSED: Final = 10_000
_SHORT_BYTES: Final = 1 << 20  # maximum size of a small upload, which does not wait for larger ones
_TRIES: Final = 3  # how many times to try an edit if other callers change the data set at the same time


@dataclass(frozen=True, slots=True)
class DatasetService:
    """The data sets of one host.

    Every method for an existing data set raises `NotFound` if there is no data set with that name.
    """

    store: Datasets
    folder: RowsFolder
    processes: LimitedProcesses  # processes for uploads only, because reading a large one takes minutes
    usage: StorageUsage
    _: KW_ONLY
    max_bytes: int  # size limit of an upload, and of a data set
    max_row_bytes: int  # size limit of a row
    # for each data set, its columns with outputs and expected answers; the columns of a data set never change
    _guessed: dict[str, tuple[str | None, str | None]] = field(default_factory=dict, init=False)

    async def add_dataset(
        self, workspace_id: str, name: str, chunks: AsyncIterator[bytes], format_: Format, *, replace: bool = False
    ) -> DatasetReport:
        """Store the rows of a file that arrives in chunks, and return the data set. The whole file is never in memory.

        With `replace`, the new data set replaces a data set with the same name; jobs that use the old data set keep its
        rows.

        Raises:
          InvalidRequest: the name is not valid, or the file has a different format or contains no row.
          NameTaken: there is a data set with that name, and `replace` is not set.
          TooLarge: the file is over this host's limit.
          LimitExceeded: reading the file takes too much processor time or memory.
          OverQuota: the workspace has reached its quota.
          MachineExhausted: this machine has too little free disk.
        """
        require_name(name, "data set")
        if not replace and await self.store.has_dataset(workspace_id, name):
            raise name_taken(name)

        async def write(stage: Path) -> DatasetFacts:
            upload, size, held = stage / _UPLOAD, 0, list[bytes]()
            with upload.open("wb") as file:
                async for chunk in at_most(self.max_bytes, storing.metered(chunks)):
                    size += len(chunk)
                    held.append(chunk)
                    if size % _HELD_BYTES < len(chunk):
                        await asyncio.to_thread(file.writelines, held)
                        held.clear()
                await asyncio.to_thread(file.writelines, held)
            return await self._written(
                storing, write_upload, stage, upload, format_, input_bytes=size, formats={format_}
            )

        with self.usage.storing(workspace_id) as storing:
            report = await self._add(workspace_id, name, write, replace=replace)
        await self.store.forget_unused(workspace_id, remove=self.folder.remove)
        return report

    async def add_unnamed(self, workspace_id: str, records: Iterable[dict[str, Json]], format_: str) -> DatasetReport:
        """Store rows for a job that is about to be created, and return their data set. A thread writes the rows.

        Raises:
          InvalidRequest: there is no row.
          TooLarge: the rows are over this host's limit.
          OverQuota: the workspace has reached its quota.
        """
        await self.usage.require_room(workspace_id)
        return await self._add(workspace_id, None, partial(self._write_records, records, format_))

    async def add_files(
        self,
        workspace_id: str,
        function: Callable[..., DatasetFacts],
        *args: Any,
        input_bytes: int,
        formats: Collection[Format],
    ) -> DatasetReport:
        """Store rows that a function reads from files, for a job that is about to be created. Return their data set.

        Args:
          workspace_id: Owner of the data set.
          function: A function such as `write_upload`; a limited process calls it with a folder, `args` and `RowLimits`.
          args: The files, and how to read them.
          input_bytes: Size of the files.
          formats: Their formats.

        Raises:
          InvalidRequest: a file cannot be read, or there is no row.
          TooLarge: the rows are over this host's limit.
          LimitExceeded: reading the files takes too much processor time or memory.
        """
        await self.usage.require_room(workspace_id)

        def write(stage: Path) -> Awaitable[DatasetFacts]:
            return self._written(storing, function, stage, *args, input_bytes=input_bytes, formats=formats)

        with self.usage.storing(workspace_id) as storing:
            return await self._add(workspace_id, None, write)

    async def _add(
        self,
        workspace_id: str,
        name: str | None,
        write: Callable[[Path], Awaitable[DatasetFacts]],
        *,
        replace: bool | str = False,
    ) -> DatasetReport:
        dataset_id = new_dataset_id()
        with MachineExhausted.refused("store the data set"):
            stage = await asyncio.to_thread(self.folder.stage, dataset_id)
            try:
                facts = await write(stage)
                (stage / _UPLOAD).unlink(missing_ok=True)
                await asyncio.to_thread(self.folder.keep, stage, dataset_id)
            finally:
                await asyncio.to_thread(remove, stage)
        try:
            made = await self.store.add_dataset(dataset_id, workspace_id, name, facts, replace=replace)
        except Exception as error:
            # if the database did not answer, the data set may be stored; if it is not, a later sweep removes the rows
            if not isinstance(error, StoreUnavailable):
                await asyncio.to_thread(self.folder.remove, dataset_id)
            raise
        return await self._report(made)

    async def _written(
        self,
        storing: Storing,
        function: Callable[..., DatasetFacts],
        stage: Path,
        *args: Any,
        input_bytes: int,
        formats: Collection[Format] = (),
    ) -> DatasetFacts:
        """Write rows in a limited process, which fails if the workspace or the disk does not have room for them."""
        room = await storing.room_bytes()
        most = self.max_bytes if room is None else min(self.max_bytes, room)
        limits = CallLimits(
            cpu_s=_CPU_S + (input_bytes >> 20),
            memory_mb=max(_MEMORY_MB, _MEMORY_PER_ROW * self.max_row_bytes >> 20),
            file_bytes=self.max_bytes + _MB,
            modules=modules_of(formats),
        )
        rows = RowLimits(most, self.max_row_bytes, self.usage.reserve_bytes)
        workspace_id, short = storing.workspace_id, input_bytes <= _SHORT_BYTES
        try:
            found = await self.processes.call(workspace_id, function, stage, *args, rows, limits=limits, short=short)
        except TooLarge:
            if most < self.max_bytes:
                await storing.resize(most + 1)  # the rows exceed the quota: this call raises the error that says so
            raise
        facts = _read_facts(found)
        await storing.resize(facts.size_bytes)
        return facts

    async def get_dataset(self, workspace_id: str, name: str) -> DatasetReport:
        """Return a data set by its name or id."""
        return await self._report(await self.store.get_dataset(workspace_id, name))

    async def list_datasets(self, workspace_id: str) -> AsyncGenerator[list[DatasetReport], None]:
        """Yield the data sets of a workspace, the newest first, in parts of a few MB."""
        async with aclosing(self.store.list_datasets(workspace_id)) as parts:
            async for part in parts:
                yield [await self._report(dataset) for dataset in part]

    async def lines(self, workspace_id: str, name: str, first: int, *, limit: int) -> list[bytes]:
        """Return at most `limit` rows as JSON lines, starting at row `first`; fewer if they have more than 16 MB."""
        dataset = await self.store.get_dataset(workspace_id, name)
        return await asyncio.to_thread(self.folder.page, dataset.id, first, limit=limit)

    async def rows_json(self, workspace_id: str, name: str, first: int, *, limit: int) -> Iterator[bytes]:
        """Return at most `limit` rows, starting at row `first`, as the parts of a JSON array.

        Each part is read from the file when it is needed, so iterating blocks.

        Raises:
          StoreUnavailable: another host has the rows.
        """
        dataset = await self.store.get_dataset(workspace_id, name)
        await asyncio.to_thread(
            self.folder.file, dataset.id
        )  # the file is opened now, so that a missing file raises an error here, not in the middle of a response
        return _joined(self.folder.json_pieces(dataset.id, first, limit=limit))

    async def path(self, workspace_id: str, name: str) -> Path:
        """Return the path of a data set's rows as JSON lines."""
        dataset = await self.store.get_dataset(workspace_id, name)
        return await asyncio.to_thread(self.folder.file, dataset.id)

    async def list_versions(self, workspace_id: str, name: str) -> list[DatasetReport]:
        """Return the kept versions of a data set, the newest first."""
        await self.store.get_dataset(workspace_id, name)
        return [await self._report(one) for one in await self.store.list_versions(workspace_id, name)]

    async def search_rows(
        self,
        workspace_id: str,
        name: str,
        *,
        text: str = "",
        where: Sequence[str] = (),
        sort: str | None = None,
        first: int = 0,
        limit: int = 100,
    ) -> bytes:
        """Return the rows that contain `text` and meet all conditions, as JSON of `FoundRows`.

        See `datasets.queries` for `where` and `sort`.

        Raises:
          InvalidRequest: a condition is not valid.
          LimitExceeded: the search takes too much processor time or memory.
        """
        conditions = [Condition.parse(one) for one in where]
        args = (text, conditions, sort, first, limit)
        return await self._queried(workspace_id, name, search_rows, *args)

    async def compare_rows(self, workspace_id: str, name: str, to: str, *, first: int = 0, limit: int = 100) -> bytes:
        """Return how the rows of the data set `to` differ from those of the data set `name`, as JSON of `RowChanges`.

        Raises:
          LimitExceeded: the comparison takes too much processor time or memory.
        """
        other = await self.path(workspace_id, to)
        return await self._queried(workspace_id, name, compare_rows, other, first, limit)

    async def describe_columns(self, workspace_id: str, name: str) -> bytes:
        """Return statistics about a data set's columns (kinds, missing and frequent values, ranges), as JSON.

        Raises:
          LimitExceeded: counting takes too much processor time or memory.
        """
        return await self._queried(workspace_id, name, describe_columns)

    async def _queried(self, workspace_id: str, name: str, query: Callable[..., object], *args: Any) -> bytes:
        file = await self.path(workspace_id, name)
        limits = CallLimits(cpu_s=_QUERY_S, memory_mb=_MEMORY_MB, file_bytes=0)
        answer: bytes = await self.processes.call(
            workspace_id, encoded_answer, query, file, *args, limits=limits, short=True
        )
        return answer

    async def edit_dataset(
        self,
        workspace_id: str,
        name: str,
        *,
        changed: dict[int, dict[str, Json]],
        removed: Sequence[int] = (),
        added: Sequence[dict[str, Json]] = (),
        create: bool = False,
        version: int | None = None,
    ) -> DatasetReport:
        """Store an edited copy of a data set as its next version, and return this version.

        Jobs that use older versions keep their rows.

        `changed` maps row numbers, which begin at 0, to new rows. With `create`, the added rows become a new data set
        if no data set has this name. `version` is the newest version that the caller knows; it is needed because row
        numbers differ between versions.

        Raises:
          InvalidRequest: a row to change or remove does not exist, or no row is left.
          TooLarge: the data set is too large to be edited.
          InUse: the data set has a newer version than `version`, or another caller changed it during every attempt.
        """
        await self.usage.require_room(workspace_id)
        edits = await asyncio.to_thread(encode_edits, changed, removed, added)
        for _ in range(_TRIES):
            try:
                before = await self.store.get_dataset(workspace_id, name)
            except NotFound:
                if not create or changed or removed:
                    raise
                return await self._add(workspace_id, name, partial(self._write_records, added, "json"))
            if version not in (None, before.version):
                raise InUse(
                    f"version {version} is no longer the newest: somebody has changed the data set since; "
                    "read the rows again, then edit them"
                )
            if before.facts.size_bytes > _EDITED_BYTES:
                raise TooLarge(
                    f"a data set over {_EDITED_BYTES >> 20} MB cannot be edited; upload the whole data set "
                    "again (`?replace=true`)"
                )
            file = await asyncio.to_thread(self.folder.file, before.id)
            args = (edit_rows, file, edits, before.facts.format)
            try:
                with self.usage.storing(workspace_id) as storing:
                    write = partial(self._write_edited, storing, args, before.facts.size_bytes)
                    report = await self._add(workspace_id, name, write, replace=before.id)
            except NameTaken:  # another caller has changed the data set at the same time
                continue
            await self.store.forget_unused(workspace_id, remove=self.folder.remove)
            return report
        raise InUse("somebody else is changing the data set right now; try again")

    async def _write_edited(
        self, storing: Storing, call: tuple[Any, ...], input_bytes: int, stage: Path
    ) -> DatasetFacts:
        function, *args = call
        return await self._written(storing, function, stage, *args, input_bytes=input_bytes)

    async def _write_records(self, records: Iterable[dict[str, Json]], format_: str, stage: Path) -> DatasetFacts:
        numbered = enumerate(records, start=1)
        limits = RowLimits(self.max_bytes, self.max_bytes, self.usage.reserve_bytes)
        return await asyncio.to_thread(write_rows, stage, numbered, format_=format_, limits=limits)

    async def rows_by_number(
        self, workspace_id: str, name: str, numbers: Sequence[int], *, memory: Reservation
    ) -> list[dict[str, Json]]:
        """Return the rows of a data set that have these numbers; reserve their memory in `memory`.

        Raises:
          NotFound: the workspace has no such data set, or it has no such row.
          Busy: there is not enough memory now.
        """
        dataset = await self.store.get_dataset(workspace_id, name)
        weights = await asyncio.to_thread(self.folder.weigh, dataset.id, numbers, most_bytes=_ROWS_BYTES)
        memory.add(sum(weights.values()))
        found = await asyncio.to_thread(self.folder.some, dataset.id, numbers, most_bytes=_ROWS_BYTES)
        if missing := [number for number in numbers if number not in found]:
            raise NotFound(f"the data set {name[:80]} has no row {missing[0]}; rows are numbered from 0")
        return [found[number] for number in numbers]

    async def delete_dataset(self, workspace_id: str, name: str) -> None:
        """Delete a data set; its rows are kept while a job or a label queue needs them."""
        await self.store.release(workspace_id, name)
        await self.store.forget_unused(workspace_id, remove=self.folder.remove)

    async def _report(self, dataset: Dataset) -> DatasetReport:
        guessed = self._guessed.get(dataset.id)
        if guessed is None:
            # this runs in a thread, because guessing from a thousand long names takes a fifth of a second
            guessed = await asyncio.to_thread(_guess, dataset.facts.columns)
            if len(self._guessed) >= _MOST_GUESSED:
                self._guessed.clear()
            self._guessed[dataset.id] = guessed
        return _report(dataset, guessed)


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts, and yield fewer, larger parts."""
    held, size = [], 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= _PART_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _guess(columns: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the columns that most likely have the outputs and the expected answers. Blocking."""
    return output_column(columns), expected_column(columns)


def _report(dataset: Dataset, guessed: tuple[str | None, str | None]) -> DatasetReport:
    facts = dataset.facts
    return DatasetReport(
        name=dataset.label,
        id=dataset.id,
        format=facts.format,
        rows=facts.rows,
        bad_row_count=facts.bad_rows,
        bad_rows=facts.bad_lines,
        columns=facts.columns,
        size_bytes=facts.size_bytes,
        digest=facts.digest,
        created_at=dataset.created_at,
        notes=facts.notes,
        version=dataset.version,
        outputs_column=guessed[0],
        expected_column=guessed[1],
    )
