"""Files of rows try to block the host or to fill its memory: the host reads each file in a limited process, which has
read no other data before.
"""

import io
import resource
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.store.store import open_store
from evaluator_host.types.errors import InvalidRequest, OutOfMemory, OutOfProcessorTime, TooLarge
from evaluator_host.types.formats import Format
from evaluator_host.types.stored import DatasetReport
from tests.jobs.desk import WORKSPACE
from tests.tables import tables

_MB = 1 << 20


@dataclass
class Shelf:
    service: DatasetService
    folder: Path

    async def upload(self, content: bytes, format_: Format, name: str = "data") -> DatasetReport:
        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(content), _MB):
                yield content[start : start + _MB]

        return await self.service.add_dataset(WORKSPACE, name, chunks(), format_, replace=True)


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    processes = LimitedProcesses(most=2)
    async with open_store(f"sqlite:///{tmp_path}/host.db", tmp_path) as store:
        rows = RowsFolder(tmp_path / "datasets")
        yield Shelf(
            DatasetService(
                tables(store).datasets, rows, processes, store.usage, max_bytes=64 * _MB, max_row_bytes=8 * _MB
            ),
            rows.path,
        )
    await processes.close()


def same_text(column: Callable[[pa.Array], pa.Array], mb: int, rows: int = 256) -> bytes:
    """Return a small Parquet file whose rows all have the same string of some megabytes."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * (mb * _MB)]))
    file = io.BytesIO()
    parquet.write_table(pa.table({"a": column(texts)}), file, compression="zstd", store_schema=False)
    return file.getvalue()


def listed(texts: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(257), pa.int32()), texts)


@pytest.mark.slow
async def test_rows_of_each_format_arrive(shelf: Shelf) -> None:
    table = io.BytesIO()
    parquet.write_table(pa.table({"a": ["x"] * 40 + ["y"], "n": range(41)}), table)
    for content, format_, rows in (
        (b'{"a": 1}\n[]\n{"a": 2}', Format.JSONL, 2),
        (b"a,b\n1,2\n3\n", Format.CSV, 1),
        (b'{"rows": [{"a": 1}]}', Format.JSON, 1),
        (table.getvalue(), Format.PARQUET, 41),
    ):
        assert (await shelf.upload(content, format_)).rows == rows
    lines = await shelf.service.lines(WORKSPACE, "data", 39, limit=5)
    assert lines == [b'{"a":"x","n":39}\n', b'{"a":"y","n":40}\n']


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("content", "format_", "refusal", "message"),
    [
        (lambda: same_text(lambda texts: texts, 1), Format.PARQUET, TooLarge, "more than 64 MB"),
        (lambda: same_text(lambda texts: texts, 30, rows=32), Format.PARQUET, InvalidRequest, "longer than 8 MB"),
        (lambda: same_text(listed, 30), Format.PARQUET, OutOfMemory, "more than 512 MB"),
        (lambda: b"PAR1" + b"\xff" * 5000 + b"PAR1", Format.PARQUET, InvalidRequest, "not Parquet"),
        (lambda: b"a\n" + b"x" * (40 * _MB), Format.CSV, InvalidRequest, "field larger than field limit"),
        (lambda: b"a," * _MB, Format.CSV, InvalidRequest, "have the same name: a"),
        (lambda: b"[" * (7 * _MB), Format.JSONL, InvalidRequest, "not JSON"),
        (lambda: b'{"a": ' + b"9" * (7 * _MB) + b"}", Format.JSONL, InvalidRequest, "not JSON"),
        (lambda: b"x" * (60 * _MB), Format.JSONL, InvalidRequest, "longer than 8 MB"),
        (lambda: b"[" * _MB, Format.JSON, InvalidRequest, "ends before the array does"),
    ],
    ids=["shared", "large", "lists", "garbage", "cell", "header", "deep", "digits", "line", "array"],
)
@pytest.mark.slow
async def test_a_hostile_file_is_refused_and_costs_the_host_little(
    shelf: Shelf, content: Callable[[], bytes], format_: Format, refusal: type[Exception], message: str
) -> None:
    file = content()
    before_s, before_kb = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(refusal, match=message):
        await shelf.upload(file, format_)
    assert time.process_time() - before_s < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50 << 10
    assert not [path for path in shelf.folder.iterdir() if "." in path.name], "nothing unfinished may be left behind"


@pytest.mark.slow
async def test_after_a_file_that_takes_its_processor_time_others_upload(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # with this value, the limit for a file of 6 MB is one second
        patch.setattr("evaluator_host.platform.datasets.service._CPU_S", -5)
        before_s = time.process_time()
        with pytest.raises(OutOfProcessorTime):
            await shelf.upload(b"{}\n" * (2 * _MB), Format.JSONL)
        assert time.process_time() - before_s < 1
    assert (await shelf.upload(b'{"a": 1}', Format.JSONL)).rows == 1
