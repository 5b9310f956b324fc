"""The data that an engine for many machines (Dask, Ray Data, …) exchanges with the pool that evaluates its rows.

A chunk is a list of `(key, record)`. The result of a chunk is a list of `(key, columns)`, one for each record, in the
same order. If a worker is lost, an engine may deliver a chunk twice: store only the first result of each key. Workers
need no credentials, and do not use a database.

Dask searches lists in arguments and results for its own objects, and sends each item of a result as a separate frame.
Both steps cost more processor time than evaluating a row. So a chunk may be a `Chunk`, and results are `ScoredChunk`:
Dask passes each of them on as a whole.
"""

import atexit
import os
import pickle
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from evaluator_host.platform.datasets.batch_outputs import Outputs
from evaluator_host.platform.datasets.mapping import BadRow, to_row
from evaluator_host.platform.datasets.mapping import Mapping as RowMapping
from evaluator_host.scale.sandbox_pool import SandboxPool
from evaluator_host.types.evaluator import Evaluator, Isolation, Json, Row
from evaluator_host.types.json_values import InvalidJson, encode_json, require_finite
from evaluator_host.types.outcome import ErrorCode, EvaluationResult, Status

Key = TypeVar("Key", bound=Hashable)

COLUMNS: Final = ("status", "score", "passed", "metrics", "error_code", "error")

_opened: dict[tuple[int, str], SandboxPool] = {}
_opening: Final = threading.Lock()


class Chunk:
    """Records with their keys, in one `bytes` object. Iterating yields `(key, record)`.

    Args:
      rows: Pairs `(key, record)`. Keys and records can be pickled.
    """

    def __init__(self, rows: Iterable[tuple[Hashable, Mapping[str, Json]]]) -> None:
        self._pickled = pickle.dumps(list(rows), pickle.HIGHEST_PROTOCOL)

    def __iter__(self) -> Iterator[tuple[Any, Mapping[str, Json]]]:
        return iter(pickle.loads(self._pickled))  # noqa: S301 - the engine's driver wrote it, and also sends code


class ScoredChunk(list[tuple[Key, dict[str, Json]]]):
    """One `(key, columns)` for each record of a chunk; the columns are those of `ChunkScorer.columns`."""


@dataclass(frozen=True)
class ChunkScorer:
    """A function that scores a chunk, and that can be pickled, so that an engine can call it on other machines.

    Example:
      futures = client.map(ChunkScorer(evaluator), [Chunk(rows) for rows in parts], pure=False)  # Dask

    Args:
      evaluator: The code and its settings.
      mapping: The column or template for each field of a row, as in jobs: `{"outputs": "answer"}`.
      isolation: `BATCH` lets rows share a process, for speed.
      pool: Options of `SandboxPool`. A process has one pool for each set of options.
    """

    evaluator: Evaluator
    mapping: Mapping[str, str] = field(default_factory=dict)
    isolation: Isolation = Isolation.ROW
    pool: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, chunk: Iterable[tuple[Key, Mapping[str, Json]]]) -> ScoredChunk[Key]:
        """Return the columns of each record, with its key: `[(key, {"status": …, …})]`.

        Raises:
          PackagesFailed: the evaluator's packages cannot be installed.
          SandboxUnavailable: no sandbox can be started on this machine.
        """
        keyed = list(chunk)
        scored = self.columns([record for _, record in keyed])
        return ScoredChunk((key, columns) for (key, _), columns in zip(keyed, scored, strict=True))

    def columns(self, records: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
        """Return `{"status", "score", "passed", "metrics", "error_code", "error"}` for each record, in their order.

        `metrics` is a JSON object in a string, so that every row of a table has the same columns.

        Raises:
          HostError: packages cannot be installed, or no sandbox can be started, as in `__call__`.
        """
        mapping = RowMapping.parse([f"{name}={source}" for name, source in self.mapping.items()])
        rows: list[Row] = []
        found: list[dict[str, Json]] = []
        for record in records:
            try:
                require_finite(record, advice="replace it with None")
                rows.append(to_row(dict(record), mapping))
                found.append({})
            except (BadRow, InvalidJson) as error:
                found.append(_failed(ErrorCode.BINDING_ERROR, f"the record cannot be made into a row: {error}"))
        outputs: Outputs = "none" if mapping.without_outputs else None
        pool = shared_pool(self.pool)
        batch = pool.evaluate_batch(self.evaluator, rows, isolation=self.isolation, outputs=outputs)
        results = iter(batch.results)
        return [columns or _columns(next(results)) for columns in found]


def shared_pool(options: Mapping[str, Any]) -> SandboxPool:
    """Return this process's open pool with these options. The pool is closed when the process ends.

    Raises:
      SandboxUnavailable: no backend works on this machine.
    """
    key = os.getpid(), repr(sorted(options.items()))
    with _opening:
        if key not in _opened:
            pool = SandboxPool(**options)
            pool.open()
            atexit.register(pool.close)
            _opened[key] = pool
        return _opened[key]


def _columns(result: EvaluationResult) -> dict[str, Json]:
    if result.error is not None:
        return _failed(result.error.code, result.error.message)
    return {
        "status": result.status.value,
        "score": result.score,
        "passed": result.passed,
        "metrics": encode_json(result.metrics).decode(),
        "error_code": None,
        "error": None,
    }


def _failed(code: ErrorCode, message: str) -> dict[str, Json]:
    columns: dict[str, Json] = dict.fromkeys(COLUMNS)
    return {**columns, "status": Status.FAILED.value, "metrics": "{}", "error_code": code.value, "error": message}
