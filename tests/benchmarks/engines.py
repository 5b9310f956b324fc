"""Measures what an engine that distributes rows costs: rows per second of a pool on one node, without an engine and
with Dask, Ray Core and Ray Data.

Each engine has one worker with the same pool of sandboxes. The engines are measured alternately, since the machine may
have other work. A round measures one chunk, then many chunks. The difference is the time of the additional chunks,
without the start of a worker (Ray Data starts a worker for each data set). Ray is measured only if it is installed.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evaluator_host import Evaluator
from evaluator_host.scale.chunks import Chunk, ChunkScorer
from evaluator_host.types.evaluator import Isolation
from tests.benchmarks.floors import EXACT_MATCH

BATCH = 2000
ROWS = {Isolation.ROW: 20_000, Isolation.BATCH: 100_000}
ROUNDS = 2
Rows = list[tuple[int, dict[str, Any]]]
Run = Callable[[ChunkScorer, list[Rows]], int]


@dataclass(frozen=True, slots=True)
class Rate:
    """One engine's figures: rows per second after the first chunk, and how many seconds the first chunk takes."""

    rows_per_s: float
    first_s: float


def rates(data_dir: Path, isolation: Isolation) -> dict[str, Rate]:
    """Return the best rate of each engine, and the rate without an engine (`alone`)."""
    record = {"inputs": {"correct_answer": "Paris", "n": 1}, "outputs": "Paris"}
    rows = [(number, record) for number in range(ROWS[isolation])]
    chunks = [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
    options = {"max_sandboxes": 2, "memory_mb": 1024, "sandbox": "bubblewrap", "data_dir": str(data_dir)}
    scorer = ChunkScorer(Evaluator(EXACT_MATCH), {}, isolation, options)
    measured: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        engines: dict[str, Run] = {"alone": _alone, "Dask": stack.enter_context(_dask())}
        if find_spec("ray"):
            stack.enter_context(_ray())
            engines |= {"Ray Core": _ray_core(), "Ray Data": _ray_data}
        for run in engines.values():
            _seconds(run, scorer, chunks[:1])  # this first chunk opens the pool and starts its sandboxes
        for _ in range(ROUNDS):
            for name, run in engines.items():
                first_s = _seconds(run, scorer, chunks[:1])
                measured.setdefault(name, []).append((_seconds(run, scorer, chunks) - first_s, first_s))
    others = len(rows) - BATCH
    return {
        name: Rate(others / min(rest for rest, _ in rounds), min(first for _, first in rounds))
        for name, rounds in measured.items()
    }


def _seconds(run: Run, scorer: ChunkScorer, chunks: list[Rows]) -> float:
    began = time.perf_counter()
    assert run(scorer, chunks) == sum(map(len, chunks))
    return time.perf_counter() - began


def _scored(found: Rows) -> int:
    return sum(columns["status"] == "scored" for _, columns in found)


def _alone(scorer: ChunkScorer, chunks: list[Rows]) -> int:
    return sum(_scored(scorer(chunk)) for chunk in chunks)


@contextmanager
def _dask() -> Iterator[Run]:
    from distributed import Client, LocalCluster  # noqa: PLC0415 - the import takes a second

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster) as client,
    ):
        yield lambda scorer, chunks: sum(
            _scored(found) for found in client.gather(client.map(scorer, [Chunk(rows) for rows in chunks], pure=False))
        )


@contextmanager
def _ray() -> Iterator[None]:
    import ray  # noqa: PLC0415 - an optional package

    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's name for it
    ray.init(resources={"sandbox_pool": 1}, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
    try:
        yield
    finally:
        ray.shutdown()


def _ray_core() -> Run:
    import ray  # noqa: PLC0415 - an optional package

    class Worker:
        def score(self, scorer: ChunkScorer, rows: Rows) -> Rows:
            return scorer(rows)

    worker = ray.remote(num_cpus=0)(Worker).remote()
    return lambda scorer, chunks: sum(
        _scored(found) for found in ray.get([worker.score.remote(scorer, chunk) for chunk in chunks])
    )


def _ray_data(scorer: ChunkScorer, chunks: list[Rows]) -> int:
    import ray  # noqa: PLC0415 - an optional package

    from evaluator_host.ray import EvaluateBatches  # noqa: PLC0415 - it imports Ray

    rows = ray.data.from_items([record for chunk in chunks for _, record in chunk], override_num_blocks=len(chunks))
    scored = rows.map_batches(
        EvaluateBatches,
        fn_constructor_kwargs={"evaluator": scorer.evaluator, "isolation": scorer.isolation, "pool": dict(scorer.pool)},
        **EvaluateBatches.resources(concurrency=1, batch_size=BATCH),
    )
    batches = scored.iter_batches(batch_format="pyarrow", batch_size=None)
    return sum(batch["status"].to_pylist().count("scored") for batch in batches)
