"""Templates try to block the host or to fill its memory: their job fails with a reason, and the host goes on, even
after a restart.
"""

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.datasets import rendering
from evaluator_host.platform.jobs.results.table import Filter
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import JobReport, JobStatus, Target
from tests.databases import Databases
from tests.jobs.desk import OK, WORKSPACE, Desk, opened

LONG_DIVISION = "{{ item.a | int(base=16) is divisibleby(item.b | int(base=16)) }}"
LONG_NUMBERS = [{"a": "f" * 4_000_000, "b": "e" * 2_000_000}]


@pytest.fixture(scope="module")
async def desk(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with opened(databases.make("sqlite"), tmp_path_factory.mktemp("desk")) as made:
        yield made


async def start(desk: Desk, template: str, rows: list[dict[str, Any]], **changes: Any) -> JobReport:
    return await desk.board.create_job(JobSpec([OK], rows, mapping={"outputs": template}, **changes), WORKSPACE)


async def errors(desk: Desk, job: JobReport) -> list[str]:
    read = desk.reader
    rows = (await read.page(WORKSPACE, job.id, Filter())).rows
    return [row.result["error"]["message"] for row in rows if row.result["error"]]


@pytest.mark.long
@pytest.mark.slow
async def test_values_of_templates_reach_the_evaluator(desk: Desk) -> None:
    rows = [{"word": "o", "n": n} for n in range(50)] + [{"n": 1}]
    job = await desk.ended(await start(desk, "{{ word ~ 'k' if n is defined }}", rows))
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 51, 1)
    assert "'word' is undefined" in (await errors(desk, job))[0]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("template", "row", "reason"),
    [
        ("{{ 5|round(-1000000000) }}", {}, "round takes a precision"),
        ("{{ item.n|round(item.p) }}", {"n": 5, "p": -1_000_000_000}, "round takes a precision"),
        ("{{ item.n|round(item.p, 'floor') }}", {"n": 5, "p": 1_000_000_000}, "round takes a precision"),
        ("{{ " + " ~ ".join(["t"] * 200) + " }}", {"t": "x" * (1 << 20)}, "longer than 4 MB"),
        ("{{ " + " + ".join(["t"] * 60) + " }}", {"t": "x" * (1 << 20)}, "longer than 4 MB"),
        ("{{ [" + "item, " * 5000 + "] }}", {"t": "x" * (1 << 20)}, "too much memory"),
        ("{{ item | items }}", {"t": "x"}, "cannot be written as JSON"),
    ],
)
async def test_a_costly_template_fails_its_rows_and_costs_the_host_little(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, template: str, row: dict[str, Any], reason: str
) -> None:
    monkeypatch.setattr(rendering, "_LIMITS", replace(rendering._LIMITS, memory_mb=256))
    before_s, before_kb = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    job = await desk.ended(await start(desk, template, [row]))
    assert (job.status, job.progress.failed) == (JobStatus.COMPLETED, 1)
    assert time.process_time() - before_s < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100 << 10
    assert reason in (await errors(desk, job))[0]


@pytest.mark.parametrize(
    "template", ["{{ " + "~".join(["t"] * 1500) + " }}", "{{ " + "+".join(["t"] * 200) + " }}", "{{ t |nothing }}"]
)
async def test_a_template_that_cannot_be_compiled_is_refused_with_its_field(desk: Desk, template: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await start(desk, template, [{"t": "x"}])
    assert [problem.field for problem in refused.value.problems] == ["mapping.outputs"]
    target = Target(base_url="http://127.0.0.1:1/v1", model="m", prompt_template=template)
    with pytest.raises(InvalidRequest) as refused:
        await desk.board.create_job(JobSpec([OK], [{"t": "x"}], target=target), WORKSPACE)
    assert [problem.field for problem in refused.value.problems] == ["target.content"]


@pytest.mark.slow
@pytest.mark.long
async def test_a_template_that_takes_too_long_fails_the_job_even_after_a_restart(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_LIMITS", replace(rendering._LIMITS, cpu_s=1))
    async with opened(database_url, tmp_path) as desk:
        job = await start(desk, LONG_DIVISION, LONG_NUMBERS)
    async with opened(database_url, tmp_path) as desk:
        before_s = time.process_time()
        ended = await desk.ended(job)
        assert (ended.status, ended.error and ended.error.code) == (JobStatus.FAILED, "limit_exceeded")
        assert "templates cannot be rendered with the rows: reading the data takes more than 1 s" in (
            ended.error.message if ended.error else ""
        )
        assert time.process_time() - before_s < 1
        assert (await desk.ended(await desk.start(["ok"] * 3))).status is JobStatus.COMPLETED


@pytest.mark.slow
async def test_another_workspace_is_served_while_templates_are_rendered(desk: Desk) -> None:
    attack = await start(desk, LONG_DIVISION, LONG_NUMBERS)
    await asyncio.sleep(0.3)
    quiet = (await desk.store.workspaces.ensure_workspace("neighbour")).id
    rows = [{"word": "ok"}] * 20
    spec = JobSpec([OK], rows, mapping={"outputs": "{{ word }}"})
    job = await desk.ended(await desk.board.create_job(spec, quiet), workspace=quiet)
    assert (job.status, job.progress.failed) == (JobStatus.COMPLETED, 0)
    assert not (await desk.board.get_job(WORKSPACE, attack.id)).status.final
