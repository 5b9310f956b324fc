"""Runs reward functions in sandboxes on the nodes of a Ray cluster. The fields of samples have verl's names."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from evaluator_host.ray import RESOURCE, node_name
from evaluator_host.scale.chunks import shared_pool
from evaluator_host.types.errors import HostError, SandboxUnavailable
from evaluator_host.types.evaluator import Evaluator, Json, Row
from evaluator_host.types.names import counted
from evaluator_host.types.outcome import EvaluationResult

_REWARDS_AT_ONCE: Final = 256
_START_S: Final = 60.0


class _RewardWorker:
    """A Ray actor with its node's sandbox pool. Rows of several calls share the sandboxes."""

    def __init__(self, evaluator: Evaluator, pool: Mapping[str, Any]) -> None:
        self._evaluator = evaluator
        self._pool = dict(pool)

    def placed(self) -> bool:
        """Return True, which shows that Ray has started this worker."""
        return True

    def probe(self) -> str | None:
        """Load the evaluator without running a row. Return why this node cannot evaluate, or None."""
        try:
            report = shared_pool(self._pool).check(self._evaluator)
        except HostError as error:
            return f"{node_name()}: {error.code}: {error.detail}"
        return None if report.ok else f"{node_name()}: the evaluator does not load: {report.problems[0].message}"

    def score(self, rows: Sequence[Row]) -> list[dict[str, Json]]:
        results = shared_pool(self._pool).evaluate_batch(self._evaluator, rows).results
        return [_reward(result) for result in results]


class RewardPool:
    """Runs reward functions in sandboxes on the nodes of a Ray cluster, for trainers such as verl, OpenRLHF and SkyRL.

    Example:
      pool = RewardPool(Evaluator(code), num_workers=4)
      rewards = await pool.compute_score([{"solution_str": "…", "ground_truth": "…"}])

    Args:
      evaluator: A pasted reward function, or any other evaluator.
      num_workers: Number of workers, each on its own node.
      pool: Options of `SandboxPool` on each node.
      failed_score: Reward of a sample for which the code failed; with None `compute_score` raises.
      resource: Name of the Ray resource of nodes with sandboxes (`ray start --resources`); None for any node.
      start_timeout_s: Seconds for Ray to place all workers; allow more in a cluster that adds nodes on demand.

    Raises:
      SandboxUnavailable: Ray did not find nodes for all workers, or no worker can evaluate. The message has the number
        of nodes, or the reason for each node.

    Attributes:
      excluded: Reasons why nodes were left out, one string per node.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        num_workers: int = 1,
        pool: Mapping[str, Any] | None = None,
        failed_score: float | None = 0.0,
        resource: str | None = RESOURCE,
        start_timeout_s: float = _START_S,
    ) -> None:
        import ray  # noqa: PLC0415 - an extra

        self._ray = ray
        self._failed_score = failed_score
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": 8}
        options |= {"scheduling_strategy": "SPREAD"} if resource is None else {"resources": {resource: 1}}
        worker = ray.remote(**options)(_RewardWorker)
        started = [worker.remote(evaluator, dict(pool or {})) for _ in range(num_workers)]
        try:
            self._require_placed(started, resource, start_timeout_s)
            reasons = ray.get([one.probe.remote() for one in started])
        except BaseException:
            self._end(started)
            raise
        self._workers = [one for one, reason in zip(started, reasons, strict=True) if reason is None]
        self.excluded = tuple(reason for reason in reasons if reason is not None)
        self._end([one for one, reason in zip(started, reasons, strict=True) if reason is not None])
        if not self._workers:
            raise SandboxUnavailable("no worker can evaluate: " + "; ".join(self.excluded))
        self._next = 0

    async def compute_score(self, batch: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
        """Return `{"score": …, metrics…}` for each sample, in their order, with `error` if the code failed.

        Args:
          batch: Samples with verl's names: `solution_str`, `ground_truth`, `data_source`, `extra_info`.

        Raises:
          ValueError: the code failed for a sample, and `failed_score` is None.
        """
        return self._checked([reward for part in await asyncio.gather(*self._send(batch)) for reward in part])

    def compute_scores(
        self,
        data_sources: Sequence[Json],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Json],
        extra_infos: Sequence[Json],
        **_: Any,
    ) -> list[dict[str, Json]]:
        """Block until the rewards of a batch are there, for `custom_reward_function` of verl's batch reward manager."""
        names = ("data_source", "solution_str", "ground_truth", "extra_info")
        samples = zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
        parts = self._ray.get(self._send([dict(zip(names, sample, strict=True)) for sample in samples]))
        return self._checked([reward for part in parts for reward in part])

    def close(self) -> None:
        """End the workers and their sandboxes."""
        self._end(self._workers)
        self._workers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_placed(self, workers: Sequence[Any], resource: str | None, timeout_s: float) -> None:
        calls = [worker.placed.remote() for worker in workers]
        ready, missing = self._ray.wait(calls, num_returns=len(calls), timeout=timeout_s)
        if not missing:
            return
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        detail = f"Ray started {len(ready)} of {len(workers)} workers within {timeout_s:g} s; "
        if resource is None:
            raise SandboxUnavailable(
                f"{detail}the cluster has {counted(len(alive), 'node')}: `ray status` shows which resources are missing"
            )
        nodes = sum(bool(node["Resources"].get(resource)) for node in alive)
        option = f"--resources='{{\"{resource}\": 1}}'"
        raise SandboxUnavailable(
            f"{detail}{nodes} of the cluster's {counted(len(alive), 'node')} have {resource}: start more nodes with "
            f"{option}, end programs that use it, or ask for fewer workers (num_workers)"
        )

    def _end(self, workers: Sequence[Any]) -> None:
        for worker in workers:
            self._ray.kill(worker)

    def _send(self, batch: Sequence[Mapping[str, Json]]) -> list[Any]:
        """Divide a batch among the workers. Return the pending rewards of its parts, in order."""
        rows = [_row(sample) for sample in batch]
        size = max(1, min(_REWARDS_AT_ONCE, -(-len(rows) // len(self._workers))))
        sent = []
        for first in range(0, len(rows), size):
            worker = self._workers[self._next % len(self._workers)]
            self._next += 1
            sent.append(worker.score.remote(rows[first : first + size]))
        return sent

    def _checked(self, rewards: list[dict[str, Json]]) -> list[dict[str, Json]]:
        for number, reward in enumerate(rewards):
            if reward["score"] is None:
                if self._failed_score is None:
                    raise ValueError(f"sample {number}: {reward['error']}")
                reward["score"] = self._failed_score
        return rewards


def _row(sample: Mapping[str, Json]) -> Row:
    """Convert a sample to a row: `variables` for reward functions, and the usual fields for other evaluators."""
    named = {name: sample.get(name) for name in ("data_source", "solution_str", "ground_truth", "extra_info")}
    inputs = {**named, "correct_answer": named["ground_truth"]}
    return Row(inputs=inputs, outputs=named["solution_str"], variables=named)


def _reward(result: EvaluationResult) -> dict[str, Json]:
    if result.error is not None:
        return {"score": None, "error": f"{result.error.code.value}: {result.error.message}"}
    return {**result.metrics, "score": result.score}
