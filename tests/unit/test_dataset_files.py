"""In a file of rows on disk, a row can be found by its number. A file is written completely or not at all, and is
removed if no record refers to it.
"""

import errno
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import (
    ROW_MEMORY,
    FileFolder,
    RowLimits,
    RowsFolder,
    partial_prefix,
    write_rows,
)
from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.types.errors import InvalidRequest, MachineExhausted, TooLarge
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.stored import BadLine
from evaluator_host.vendors.nemo.blobs import BlobFolder

ROWS = [{"n": n, "text": "x" * (n % 7)} for n in range(300)]


def page(folder: RowsFolder, dataset_id: str, first: int, *, limit: int) -> list[dict[str, Any]]:
    return [decode_json(line) for line in folder.page(dataset_id, first, limit=limit)]


def written(folder: Path, rows: list[object], *, max_bytes: int = 1 << 20) -> RowsFolder:
    rows_folder = RowsFolder(folder)
    rows_folder.write("ds_1", enumerate(rows, start=1), format_="jsonl", max_bytes=max_bytes)
    return rows_folder


def test_rows_bad_lines_columns_and_size_are_reported(tmp_path: Path) -> None:
    rows = [{"a": 1}, BadRow("not JSON"), {"b": 2, "a": 2**80}, [1], {"a": None}]
    facts = RowsFolder(tmp_path).write("ds_1", enumerate(rows, start=1), format_="csv", max_bytes=1 << 20)
    assert (facts.format, facts.rows, facts.bad_rows, facts.columns) == ("csv", 3, 2, ("a", "b"))
    assert facts.bad_lines == (BadLine(2, "not JSON"), BadLine(4, "a row must be an object, not a list"))
    assert facts.size_bytes == (tmp_path / "ds_1" / "rows.jsonl").stat().st_size
    assert page(RowsFolder(tmp_path), "ds_1", 0, limit=9) == [{"a": 1}, {"b": 2, "a": 2**80}, {"a": None}]


@pytest.mark.parametrize("first", [0, 1, 63, 64, 65, 128, 299])
def test_rows_are_read_from_any_one_on(tmp_path: Path, first: int) -> None:
    folder = written(tmp_path, ROWS)
    assert page(folder, "ds_1", first, limit=3) == ROWS[first : first + 3]
    assert list(folder.rows("ds_1", first=first)) == list(enumerate(ROWS))[first:]


def test_there_is_nothing_beyond_the_last_row(tmp_path: Path) -> None:
    assert page(written(tmp_path, ROWS), "ds_1", 300, limit=3) == []
    for first in (10_000, 2**53, 2**60):
        assert page(written(tmp_path / str(first), ROWS), "ds_1", first, limit=3) == []


@pytest.mark.parametrize("numbers", [[0], [299, 0, 150], [5, 6, 7], [0, 64, 65, 200, 201], list(range(300)), []])
def test_single_rows_are_found_by_their_numbers(tmp_path: Path, numbers: list[int]) -> None:
    assert written(tmp_path, ROWS).some("ds_1", numbers) == {number: ROWS[number] for number in numbers}


def test_rows_of_many_values_are_left_out_before_they_fill_the_memory(tmp_path: Path) -> None:
    folder = written(tmp_path, [{"x": [[]] * 1000}] * 5)
    assert len(folder.some("ds_1", range(5), most_bytes=25_000)) == 1
    assert len(folder.some("ds_1", range(5))) == 5
    assert folder.weigh("ds_1", range(5), most_bytes=25_000).keys() == {0}


def test_a_row_with_so_many_values_that_decoding_it_would_take_seconds_is_bad(tmp_path: Path) -> None:
    many = {"x": [[]] * (ROW_MEMORY // 100)}
    facts = RowsFolder(tmp_path).write("ds_1", enumerate([many, {"x": 1}]), format_="jsonl", max_bytes=32 << 20)
    assert (facts.rows, facts.bad_rows) == (1, 1)
    assert facts.bad_lines[0].message == "it has so many values that they would take over 128 MB of memory"


def test_nothing_is_left_of_rows_that_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="several data sets"):
        written(tmp_path, ROWS, max_bytes=1000)
    with pytest.raises(InvalidRequest, match="line 1: a row must be an object, not a number"):
        written(tmp_path, [7])
    with pytest.raises(InvalidRequest, match="no row in the data: it is empty, or has a header"):
        written(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_that_takes_no_more_is_said_to_be_the_machines(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for row in ROWS:
            yield encode_json(row) + b"\n"

    uploads = DatasetService(
        Nobody(), RowsFolder(tmp_path), LimitedProcesses(), Nobody(), max_bytes=1 << 20, max_row_bytes=1 << 20
    )  # type: ignore[arg-type]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(MachineExhausted, match="could not store the data set"):
            await uploads.add_dataset("w", "d", chunks(), Format.JSONL)
        with pytest.raises(MachineExhausted, match="could not store the rows"):
            written(tmp_path, ROWS)
        with pytest.raises(MachineExhausted, match="could not keep the file"):
            await BlobFolder(tmp_path, max_bytes=1 << 20).receive(chunks())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == []


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


class Nobody:
    """A store without data sets and without a quota."""

    @contextmanager
    def storing(self, _workspace: str) -> Iterator["Nobody"]:
        yield self

    def metered(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        return chunks

    async def has_dataset(self, _workspace: str, _name: str) -> bool:
        return False


def test_rows_are_on_the_disk_before_the_database_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name.partition(".host")[0])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    written(tmp_path, ROWS)
    assert synced == ["rows.jsonl", "rows.index", "ds_1", tmp_path.name]


def test_a_file_system_that_cannot_sync_a_folder_keeps_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, number = os.fsync, errno.EINVAL

    def of_network_share(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", of_network_share)
    assert written(tmp_path, ROWS).has_rows("ds_1")
    number = errno.EIO
    with pytest.raises(MachineExhausted, match="Input/output error"):
        written(tmp_path / "again", ROWS)


def test_files_of_dead_hosts_are_found_and_files_of_others_are_not(tmp_path: Path) -> None:
    folder = written(tmp_path, ROWS)
    (tmp_path / f"ds_2.{_dead()}").mkdir()
    (tmp_path / "ds_3.host-1-1-1").mkdir()  # belongs to a host in another pid namespace, which may be alive
    assert folder.orphans({"ds_1"}) == [f"ds_2.{_dead()}"]
    assert folder.orphans(set()) == [f"ds_2.{_dead()}"], (
        "rows that were written just now must stay, although no record refers to them"
    )
    os.utime(tmp_path / "ds_1", (0, 0))
    assert sorted(folder.orphans(set())) == ["ds_1", f"ds_2.{_dead()}"]


def test_rows_do_not_fill_the_disk(tmp_path: Path) -> None:
    rows = ({"text": "x" * 1000} for _ in range(10_000))
    limits = RowLimits(max_bytes=1 << 30, max_row_bytes=1 << 20, reserve_bytes=1 << 60)
    with pytest.raises(MachineExhausted, match="FREE_DISK"):
        write_rows(tmp_path, enumerate(rows), format_="jsonl", limits=limits)
    assert (tmp_path / "rows.jsonl").stat().st_size < 5 << 20


def test_uploads_of_dead_hosts_are_removed_at_once(tmp_path: Path) -> None:
    own, dead = tmp_path / f"{partial_prefix()}1", tmp_path / f"partial-{_dead()}_1"
    own.touch()
    dead.touch()
    assert FileFolder(tmp_path).sweep(set()) == 1
    assert names(tmp_path) == [own.name]


def _dead() -> str:
    return f"{this_instance().rpartition('-')[0]}-1"


@pytest.mark.parametrize(
    ("first", "limit"), [(0, 1), (0, 400), (63, 2), (64, 3), (130, 1), (298, 5), (300, 5), (900, 1)]
)
def test_rows_are_read_as_an_array_in_small_pieces(first: int, limit: int, tmp_path: Path) -> None:
    rows: list[Any] = [*ROWS[:130], {"text": "x" * 300_000}, *ROWS[131:]]
    pieces = list(written(tmp_path, rows, max_bytes=1 << 30).json_pieces("ds_1", first, limit=limit))
    assert decode_json(b"".join(pieces)) == rows[first : first + limit]
    assert max(map(len, pieces)) <= (64 << 10) + 1


@pytest.mark.long
@pytest.mark.slow
def test_a_page_ends_at_16_megabytes_and_has_a_row_at_least(tmp_path: Path) -> None:
    rows = [{"text": "x" * (6 << 20)}] * 4 + [{"text": "x" * (20 << 20)}] * 2
    folder = RowsFolder(tmp_path)
    folder.write("ds_1", enumerate(rows), format_="jsonl", max_bytes=128 << 20)
    assert [len(folder.page("ds_1", first, limit=100)) for first in range(7)] == [3, 3, 3, 2, 1, 1, 0]
