"""Ray Data and reward actors work on real nodes, which are raylets on one machine, even if a node is killed in the
middle.

These tests run if Ray is installed (`pip install 'evaluator-host[ray]'`), and in CI.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from evaluator_host import Client, Evaluator
from evaluator_host.types.errors import SandboxUnavailable
from evaluator_host.types.evaluator import Isolation
from evaluator_host.types.jobs import Executor, JobReport, JobStatus, NodeState
from tests.conftest import DATA_DIR
from tests.docs.blocks import ROOT, blocks
from tests.server import Server

ray = pytest.importorskip("ray")

from evaluator_host.ray import EvaluateBatches, RewardPool  # noqa: E402

ROWS = 12_000
CODE = """
def evaluate(inputs, outputs, trace):
    assert inputs["n"] % 1000 != 7, "a row that fails"
    return {"score": inputs["n"] / 7, "half": outputs / 2}
"""
VERL = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return 1.0 if ground_truth in solution_str else 0.0
"""
NODE = {
    "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap",
    "EVALUATOR_HOST_MAX_SANDBOXES": "2", "EVALUATOR_HOST_SANDBOX_MEMORY_MB": "1024",
}  # fmt: skip
# without the last setting, Ray would start 32 processes to read the footer of a Parquet file
OF_RAY = {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_PARQUET_FOOTER_NUM_ACTORS": "1"}
OPTIONS = {"max_sandboxes": 2, "memory_mb": 1024, "sandbox": "bubblewrap", "data_dir": str(DATA_DIR)}

# warnings are allowed, because Ray warns about its own future versions and leaves its own files open
pytestmark = [pytest.mark.engine, pytest.mark.ray, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]


_STORE = 150 << 20


class Cluster:
    """A head node without processors, and nodes with sandboxes. Each node is a separate raylet."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster as Raylets  # noqa: PLC0415 - an optional package

        self.raylets = Raylets(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "object_store_memory": _STORE, "include_dashboard": False},
        )
        self.nodes = [self.add() for _ in range(nodes)]
        ray.init(address=self.raylets.address, log_to_driver=False)

    def add(self, **environment: str) -> Any:
        return self.raylets.add_node(
            num_cpus=1, resources={"sandbox_pool": 1}, object_store_memory=_STORE, env_vars=environment or None
        )

    def kill(self, node: Any) -> None:
        for process in node.all_processes["raylet"]:
            os.kill(process.process.pid, signal.SIGKILL)

    def close(self) -> None:
        ray.shutdown()
        self.raylets.shutdown()


@pytest.fixture(scope="module")
def storage() -> Iterator[str]:
    """Run an S3 server with a bucket, and yield the server's address, which the nodes' environment contains."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - the import takes a second, and only one test needs it

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    httpx.put(f"{address}/bucket", timeout=120).raise_for_status()
    found = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {**found, "AWS_ENDPOINT_URL": address}.items():
            patched.setenv(name, value)
        yield address
    server.stop()


@pytest.fixture(scope="module")
def cluster(storage: str) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {**OF_RAY, **NODE}.items():
            patched.setenv(name, value)  # settings of the nodes, which their workers inherit
        made = Cluster(3)
        yield made
        made.close()


def test_a_pasted_reward_function_scores_for_a_trainer(cluster: Cluster) -> None:
    samples = [{"solution_str": f"it is {n}", "ground_truth": str(n % 3), "data_source": "d"} for n in range(30)]
    due = [float(str(n % 3) in f"it is {n}") for n in range(30)]
    with RewardPool(Evaluator(VERL), num_workers=2, pool=OPTIONS) as pool:
        assert [reward["score"] for reward in asyncio.run(pool.compute_score(samples))] == due
        columns = [[sample.get(name) for sample in samples] for name in ("data_source", "solution_str", "ground_truth")]
        assert [reward["score"] for reward in pool.compute_scores(*columns, [None] * 30)] == due
        (failed,) = asyncio.run(pool.compute_score([{"solution_str": None, "ground_truth": "a"}]))
        assert failed["score"] == 0.0
        assert "user_exception" in failed["error"]


def test_nodes_without_a_backend_are_named(cluster: Cluster) -> None:
    with pytest.raises(SandboxUnavailable, match=r"node [0-9.]+: sandbox_unavailable"):
        RewardPool(Evaluator(VERL), num_workers=1, pool={**OPTIONS, "sandbox": "docker", "settings": _no_engine()})


def test_more_workers_than_nodes_end_with_an_error_and_keep_no_node(cluster: Cluster) -> None:
    with pytest.raises(SandboxUnavailable, match=r"started 3 of 4 workers within 20 s; 3 of the cluster's 4 nodes"):
        RewardPool(Evaluator(VERL), num_workers=4, pool=OPTIONS, start_timeout_s=20)
    with RewardPool(Evaluator(VERL), num_workers=3, pool=OPTIONS) as pool:
        assert pool.excluded == ()


def test_the_example_of_the_document_runs(storage: str, cluster: Cluster) -> None:
    """The example in the documentation runs.

    The example has ten lines: Parquet on S3, a pinned numpy, scores written back to S3.
    """
    import pyarrow as pa  # noqa: PLC0415 - Ray Data installs this package
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above
    from pyarrow import fs  # noqa: PLC0415 - as above

    bucket, folder = fs.FileSystem.from_uri(f"s3://bucket?endpoint_override={storage}&allow_bucket_creation=true")
    table = pa.table({"answer": [1.0, 2.0], "gold": [1.0 + 1e-12, 3.0]})
    pq.write_table(table, f"{folder}/answers.parquet", filesystem=bucket)
    (example,) = [block.text for block in blocks(ROOT / "docs" / "scale.md") if "read_parquet" in block.text]
    changes = {
        "ray.init()\n": "",
        '.parquet")': f'.parquet?endpoint_override={storage}")',
        '/scores")': f'/scores?endpoint_override={storage}")',
        "concurrency=4": "concurrency=1",
        '"mapping":': f'"pool": {OPTIONS!r}, "mapping":',
    }
    for old, new in changes.items():
        assert old in example
        example = example.replace(old, new)
    exec(example, {})
    found = pq.read_table(f"{folder}/scores", filesystem=bucket).to_pylist()
    assert sorted((row["answer"], row["status"], row["score"]) for row in found) == [
        (1.0, "scored", 1.0),
        (2.0, "scored", 0.0),
    ]


def test_a_job_on_the_nodes_loses_no_row_with_a_node_or_its_host(cluster: Cluster, tmp_path: Path) -> None:
    """A job on several nodes loses no row when it loses a node or its host. One node cannot start sandboxes, so the job
    does not use it. In the middle of the job another node is killed, and then the host; a second host finishes the job.
    """
    cluster.add(EVALUATOR_HOST_SANDBOX="docker", EVALUATOR_HOST_DOCKER_HOST="tcp://127.0.0.1:1")
    variables = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path / 'host.db'}",
        "EVALUATOR_HOST_RAY_ADDRESS": cluster.raylets.address,
    }
    rows = ({"n": n, "outputs": n % 10} for n in range(ROWS))
    with Server(log=tmp_path / "first", environment=variables) as first, Client(first.url) as client:
        client.datasets.upload("numbers", rows)
        made = client.jobs.create([Evaluator(CODE)], "numbers", isolation=Isolation.BATCH, executor=Executor.RAY)
        _until(client, made.id, 0.3)
        cluster.kill(cluster.nodes.pop(0))
        job = _until(client, made.id, 0.5, lambda job: NodeState.EXCLUDED in {node.state for node in job.nodes})
        (excluded,) = [node for node in job.nodes if node.state is NodeState.EXCLUDED]
        assert "sandbox_unavailable" in (excluded.reason or "")
        assert excluded.rows == 0
        first.kill()
    with Server(log=tmp_path / "second", environment=variables) as second, Client(second.url) as client:
        _until(client, made.id, 1.0)  # if this times out, the message lists the nodes, and says why a node was excluded
        ended = client.jobs.wait(made.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, ROWS // 1000)
        # only rows that were lost with a node or a host ran twice
        assert sum(node.rows for node in ended.nodes) <= ROWS + 20 * 2000
        local = client.jobs.wait(client.jobs.create([Evaluator(CODE)], "numbers", isolation=Isolation.BATCH).id)
        assert local.nodes == ()
        assert _statistics(client, ended.id) == _statistics(client, local.id)
        paused = client.jobs.create([Evaluator(CODE)], "numbers", executor=Executor.RAY)
        client.jobs.pause(paused.id)
        assert client.jobs.get(paused.id).status in (JobStatus.PAUSED, JobStatus.RUNNING)
        client.jobs.cancel(paused.id)
        assert client.jobs.wait(paused.id).status is JobStatus.CANCELLED


def test_nodes_whose_workers_are_killed_are_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    variables = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path / 'host.db'}",
        "EVALUATOR_HOST_RAY_ADDRESS": cluster.raylets.address,
    }
    rows = ({"n": n, "outputs": n % 10} for n in range(ROWS))
    with Server(log=tmp_path / "log", environment=variables) as host, Client(host.url) as client:
        client.datasets.upload("numbers", rows)
        made = client.jobs.create([Evaluator(CODE)], "numbers", isolation=Isolation.BATCH, executor=Executor.RAY)
        _until(client, made.id, 0.2)
        there = psutil.process_iter(["cmdline"])
        workers = [one for one in there if "".join(one.info["cmdline"] or ()).startswith("ray::Worker")]
        assert workers
        for one in workers:
            one.kill()
        _until(client, made.id, 1.0)
        ended = client.jobs.wait(made.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, ROWS // 1000)


def _until(client: Client, job_id: str, share: float, also: Callable[[JobReport], bool] = lambda _: True) -> JobReport:
    """Wait until this share of a job's rows is done and `also` is true of the job; return the job."""
    until = time.monotonic() + 300
    while (job := client.jobs.get(job_id)).progress.done < share * job.progress.rows or not also(job):
        assert time.monotonic() < until, job
        assert share == 1.0 or not job.status.final, job
        time.sleep(0.1)
    return job


def _statistics(client: Client, job_id: str) -> Any:
    (statistics,) = client.jobs.results(job_id).evaluators
    return [statistics.rows, statistics.scored, statistics.failed, statistics.metrics]


def _no_engine() -> Any:
    from evaluator_host.engine.config.settings import Settings  # noqa: PLC0415 - only this test needs it

    return Settings(docker_host="tcp://127.0.0.1:1")


def test_a_raylet_that_is_killed_loses_no_row(cluster: Cluster, tmp_path: Path) -> None:
    # each task takes a whole processor, because with less Ray would start more tasks at once, each in a process
    ds = ray.data.range(ROWS, override_num_blocks=20).map_batches(
        lambda batch: {"n": batch["id"], "answer": batch["id"] % 10}
    )
    scored = ds.map_batches(
        EvaluateBatches,
        fn_constructor_kwargs={
            "evaluator": Evaluator(CODE),
            "mapping": {"outputs": "answer"},
            "isolation": "batch",
            "pool": OPTIONS,
        },
        **EvaluateBatches.resources(concurrency=2, batch_size=250),
    )
    kept: dict[int, tuple[Any, ...]] = {}
    delivered, killed = 0, False
    for row in scored.iter_rows():
        delivered += 1
        kept.setdefault(row["n"], (row["status"], row["score"], json.loads(row["metrics"]).get("half")))
        if not killed and len(kept) > ROWS * 0.3:
            cluster.kill(cluster.nodes[-1])
            killed = True
            time.sleep(0.1)
    assert killed
    assert delivered == ROWS
    assert kept == {n: ("scored", n / 7, n % 10 / 2) if n % 1000 != 7 else ("failed", None, None) for n in range(ROWS)}
