"""Chunks of rows run on a real Dask engine, and a worker is killed in the middle: each row is stored once, with the
same result as in a local run.
"""

import json
import os
import pickle
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from evaluator_host import Evaluator, SandboxPool
from evaluator_host.scale.chunks import Chunk, ChunkScorer
from evaluator_host.types.evaluator import Isolation
from tests.conftest import DATA_DIR

ROWS, CHUNK = 3_000, 100
CODE = """
def evaluate(inputs, outputs, trace):
    assert inputs["n"] % 1000 != 7, "a row that fails"
    return {"score": inputs["n"] / 7, "half": outputs / 2, "passed": outputs > 5}
"""
OPTIONS = {"max_sandboxes": 1, "memory_mb": 512, "sandbox": "bubblewrap", "data_dir": str(DATA_DIR)}
MAPPING = {"outputs": "answer"}

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def record(n: int) -> dict[str, Any]:
    return {"n": n, "answer": n % 10} if n % 500 != 3 else {"n": n}  # one row lacks the column of the mapping


def chunks() -> Iterator[list[tuple[int, dict[str, Any]]]]:
    for first in range(0, ROWS, CHUNK):
        yield [(n, record(n)) for n in range(first, first + CHUNK)]


def expected(n: int) -> tuple[str, float | None, bool | None, dict[str, float], str | None]:
    if n % 500 == 3:
        return "failed", None, None, {}, "binding_error"
    if n % 1000 == 7:
        return "failed", None, None, {}, "user_exception"
    return "scored", n / 7, n % 10 > 5, {"half": n % 10 / 2}, None


def facts(columns: dict[str, Any]) -> tuple[str, float | None, bool | None, dict[str, float], str | None]:
    metrics = json.loads(columns["metrics"])
    metrics.pop("score", None)
    return columns["status"], columns["score"], columns["passed"], metrics, columns["error_code"]


@pytest.mark.long
def test_a_worker_that_is_killed_loses_no_row_and_keeps_none_twice() -> None:
    from distributed import Client, LocalCluster, as_completed  # noqa: PLC0415 - the import takes a second, and only this test needs it

    scorer = ChunkScorer(Evaluator(CODE), MAPPING, Isolation.BATCH, OPTIONS)
    kept: dict[int, tuple[Any, ...]] = {}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        killed = False
        futures = client.map(scorer, [Chunk(rows) for rows in chunks()], pure=False, retries=3)
        for _, scored in as_completed(futures, with_results=True):
            for key, columns in scored:
                # the engine may return a row several times; only the first time counts
                kept.setdefault(key, facts(columns))
            if not killed and len(kept) > ROWS * 0.3:
                os.kill(next(iter(pids.values())), signal.SIGKILL)
                killed = True
    assert killed
    assert kept == {n: expected(n) for n in range(ROWS)}


def test_a_chunk_has_a_result_for_each_record_in_order() -> None:
    scorer = ChunkScorer(Evaluator(CODE), MAPPING, pool=OPTIONS)
    scored = scorer([(f"key-{n}", record(n)) for n in range(12)])
    assert [key for key, _ in scored] == [f"key-{n}" for n in range(12)]
    assert [facts(columns) for _, columns in scored] == [expected(n) for n in range(12)]
    assert pickle.loads(pickle.dumps(scored)) == scored
    ((_, columns), _) = scorer([("nan", {"answer": 1, "price": [float("nan")]}), ("whole", record(1))])
    assert "$.price[0] is NaN or infinite" in columns["error"]
    assert list(Chunk((f"key-{n}", record(n)) for n in range(12))) == [(f"key-{n}", record(n)) for n in range(12)]
    assert scorer([]) == []
    with SandboxPool(**OPTIONS) as pool:
        assert pool.check(scorer.evaluator).ok


def test_a_mapping_says_that_no_record_has_outputs() -> None:
    scorer = ChunkScorer(
        Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs is None"),
        {"outputs": "none"},
        pool=OPTIONS,
    )
    assert [one["score"] for one in scorer.columns([{"n": 1}, {"n": 2}])] == [1.0, 1.0]
