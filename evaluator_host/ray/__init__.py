"""Runs evaluators on a Ray cluster (`pip install 'evaluator-host[ray]'`): over Ray Data, or as reward functions.

Each node has one worker with one pool of sandboxes, because warm sandboxes, installed packages and the memory limit are
shared on a node. Workers reserve no processors in Ray, because Ray Data's own tasks need the processors. Each
worker takes one `sandbox_pool` of its node's resources, so Ray places workers only on nodes that were started with
`--resources='{"sandbox_pool": 1}'`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from evaluator_host.scale.chunks import COLUMNS, ChunkScorer, shared_pool
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Evaluator, Isolation

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluator_host.ray.rewards import RewardPool

__all__ = ["RESOURCE", "EvaluateBatches", "RewardPool", "node_name"]

RESOURCE: Final = "sandbox_pool"
_BATCH_ROWS: Final = 2000
_REWARDS: Final[EntryPoint[Any]] = EntryPoint("evaluator_host.ray.rewards:RewardPool")


def __getattr__(name: str) -> Any:
    """Import `RewardPool` when it is first used."""
    if name == "RewardPool":
        return _REWARDS.load()
    raise AttributeError(name)


class EvaluateBatches:
    """Adds the columns `status`, `score`, `passed`, `metrics`, `error_code` and `error` to a Ray data set.

    Example:
      ds.map_batches(
          EvaluateBatches,
          fn_constructor_kwargs={"evaluator": evaluator, "mapping": {"outputs": "answer"}},
          **EvaluateBatches.resources(concurrency=4),
      )

    Args:
      evaluator: The code and its settings.
      mapping: The column or template for each field of a row, as in jobs.
      isolation: `BATCH` lets rows share a process, for speed.
      pool: Options of `SandboxPool` on each node.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        mapping: Mapping[str, str] | None = None,
        isolation: Isolation | str = Isolation.ROW,
        pool: Mapping[str, Any] | None = None,
    ) -> None:
        self._scorer = ChunkScorer(evaluator, dict(mapping or {}), Isolation(isolation), dict(pool or {}))
        self._fault: HostError | None = None
        try:
            shared_pool(self._scorer.pool)
        except HostError as error:  # if the constructor raised an error, Ray would call it again and again
            self._fault = error

    def __call__(self, batch: "pa.Table") -> "pa.Table":
        """Return the batch with the new columns.

        Raises:
          RuntimeError: this node has no sandbox backend, or the evaluator's packages cannot be installed.
        """
        import pyarrow as pa  # noqa: PLC0415 - Ray Data has installed it on the nodes

        try:
            if self._fault is not None:
                raise self._fault
            scored = self._scorer.columns(batch.to_pylist())
        except HostError as error:
            raise RuntimeError(f"{node_name()}: {error.code}: {error.detail}") from error
        types: dict[str, Any] = dict.fromkeys(COLUMNS, pa.string())
        types |= {"score": pa.float64(), "passed": pa.bool_()}
        for name in COLUMNS:
            column = pa.array([columns[name] for columns in scored], types[name])
            batch = batch.drop_columns([name]) if name in batch.column_names else batch
            batch = batch.append_column(name, column)
        return batch

    @staticmethod
    def resources(
        *, concurrency: int | tuple[int, int] = 1, batch_size: int = _BATCH_ROWS, resource: str | None = RESOURCE
    ) -> dict[str, Any]:
        """Return the arguments of `map_batches` that place one worker on each node.

        Args:
          concurrency: Number of workers, at most one for each node, or a pair of the lowest and the highest number.
          batch_size: Rows of one call; 250 rows take a quarter of a second with isolation `row`.
          resource: Ray resource of the nodes with sandboxes, see `ray start --resources`. None for any node.
        """
        from ray.data import ActorPoolStrategy  # noqa: PLC0415 - an extra

        fewest, most = concurrency if isinstance(concurrency, tuple) else (concurrency, concurrency)
        return {
            "compute": ActorPoolStrategy(min_size=fewest, max_size=most),
            "batch_size": batch_size,
            "batch_format": "pyarrow",
            "num_cpus": 0,
            **({} if resource is None else {"resources": {resource: 1}}),
        }


def node_name() -> str:
    """Return the name of this node, for messages."""
    import ray  # noqa: PLC0415 - an extra

    return f"node {ray.util.get_node_ip_address()}"
