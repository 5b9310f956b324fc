"""Several threads can use `SandboxPool` and `AsyncSandboxPool` with real sandboxes, streams can be endless, and the
server's code is not imported.
"""

import asyncio
import itertools
import json
import math
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaluator_host import AsyncSandboxPool, Evaluator, Language, Row, SandboxPool
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Isolation
from evaluator_host.types.outcome import ErrorCode, Status
from tests.conftest import DATA_DIR

DOUBLE = Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs * 2")
OPTIONS = {"max_sandboxes": 2, "sandbox": "bubblewrap", "data_dir": DATA_DIR, "memory_mb": 1024}
ALONE = """
import json, sys
from evaluator_host import Evaluator, SandboxPool
with SandboxPool(sandbox="bubblewrap", data_dir=sys.argv[1]) as pool:
    result = pool.evaluate(Evaluator("def evaluate(inputs, outputs, trace):\\n    return outputs"), outputs=0.5)
print(json.dumps([result.score, sorted({name.partition(".")[0] for name in sys.modules})]))
"""

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(**OPTIONS) as opened:
        yield opened


def rows(count: int) -> list[Row]:
    return [Row(outputs=n) for n in range(count)]


def test_one_row_and_a_batch_in_order(pool: SandboxPool) -> None:
    assert pool.evaluate(DOUBLE, outputs=21).score == 42
    batch = pool.evaluate_batch(DOUBLE, (row for row in rows(50)), isolation=Isolation.BATCH)
    assert [result.score for result in batch.results] == [2 * n for n in range(50)]
    assert (batch.summary.rows, batch.summary.mean, batch.together) == (50, 49.0, None)
    assert pool.evaluate_batch(DOUBLE, []).results == ()
    failed = pool.evaluate(DOUBLE, outputs=None)
    assert failed.error is not None
    assert failed.error.code is ErrorCode.USER_EXCEPTION
    assert pool.check(Evaluator("def evaluate(")).ok is False


def test_a_number_that_json_does_not_have_is_refused_with_its_path(pool: SandboxPool) -> None:
    given = [Row(outputs=1.0), Row({"a": [math.nan]}, 2.0), Row(outputs=3.0)]
    with pytest.raises(InvalidRequest, match=r"at \$\.outputs is NaN or infinite"):
        pool.evaluate(DOUBLE, outputs=math.inf)
    with pytest.raises(InvalidRequest, match=r"at \$\.rows\[1\]\.inputs\.a\[0\] is NaN or infinite"):
        pool.evaluate_batch(DOUBLE, given)
    results = dict(pool.evaluate_stream(DOUBLE, given))
    assert {at: result.score for at, result in results.items()} == {0: 2.0, 1: None, 2: 6.0}
    error = results[1].error
    assert error is not None
    assert (error.code, "$.inputs.a[0]" in error.message) == (ErrorCode.BINDING_ERROR, True)


def test_several_threads_and_evaluators_at_once(pool: SandboxPool) -> None:
    def score(factor: int) -> float | None:
        code = f"def evaluate(inputs, outputs, trace):\n    return outputs * {factor}"
        return pool.evaluate(Evaluator(code), outputs=10).score

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(score, range(1, 9))) == [10 * factor for factor in range(1, 9)]


def test_a_stream_answers_rows_before_the_next_ones_exist(pool: SandboxPool) -> None:
    coming: queue.Queue[Row | None] = queue.Queue()
    stream = pool.evaluate_stream(DOUBLE, iter(coming.get, None))
    for n in range(5):
        coming.put(Row(outputs=n))
        index, result = next(stream)
        assert (index, result.score) == (n, 2 * n)
    for n in range(5, 100):
        coming.put(Row(outputs=n))
    coming.put(None)
    assert {index: result.score for index, result in stream} == {n: 2 * n for n in range(5, 100)}


def test_a_stream_draws_few_rows_ahead_and_can_be_left(pool: SandboxPool) -> None:
    drawn = itertools.count()
    stream = pool.evaluate_stream(
        DOUBLE, (Row(outputs=next(drawn)) for _ in itertools.count()), isolation=Isolation.BATCH
    )
    read = [index for index, _ in itertools.islice(stream, 1000)]
    assert len(set(read)) == 1000
    stream.close()
    assert next(drawn) < 1000 + 3 * 256 + 200
    assert pool.evaluate(DOUBLE, outputs=1).score == 2


def test_a_stream_whose_source_fails_says_so_and_one_that_never_loads_answers_each_row(pool: SandboxPool) -> None:
    def source() -> Iterator[Row]:
        yield from rows(3)
        raise OSError("the file has a hole")

    with pytest.raises(OSError, match="the file has a hole"):
        list(pool.evaluate_stream(DOUBLE, source()))
    broken = list(pool.evaluate_stream(Evaluator("import nothing_of_that_name"), rows(600)))
    assert sorted(index for index, _ in broken) == list(range(600))
    assert {result.status for _, result in broken} == {Status.FAILED}


@pytest.mark.long
async def test_the_asynchronous_pool_takes_asynchronous_rows_and_javascript() -> None:
    async def coming() -> AsyncIterator[Row]:
        for row in rows(40):
            await asyncio.sleep(0)
            yield row

    javascript = Evaluator("export function evaluate(inputs, outputs) { return outputs * 2 }", Language.JAVASCRIPT)
    async with AsyncSandboxPool(**OPTIONS) as pool:
        scores = {index: result.score async for index, result in pool.evaluate_stream(DOUBLE, coming())}
        assert scores == {n: 2 * n for n in range(40)}
        assert {index async for index, _ in pool.evaluate_stream(DOUBLE, rows(40))} == set(range(40))
        assert (await pool.evaluate(javascript, outputs=4)).score == 8
        assert pool.settings.max_sandboxes == pool.settings.max_sandboxes_per_evaluator == 2
    with pytest.raises(InvalidRequest, match="not open"):
        await pool.evaluate(DOUBLE, outputs=1)


def test_a_closed_pool_says_so_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with SandboxPool(**OPTIONS) as pool:
        assert pool.evaluate(DOUBLE, outputs=1).score == 2
    with pytest.raises(InvalidRequest, match="not open"):
        pool.evaluate(DOUBLE, outputs=1)
    assert not [thread for thread in set(threading.enumerate()) - before if "pool" in thread.name]


@pytest.mark.long
def test_a_pool_imports_no_server_client_or_database() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, str(DATA_DIR)], capture_output=True, text=True, timeout=100, check=True
    )
    score, imported = json.loads(ran.stdout)
    assert score == 0.5
    assert not {"fastapi", "starlette", "uvicorn", "httpx", "sqlalchemy", "alembic", "aiosqlite", "psycopg", "ray"} & {
        *imported
    }
