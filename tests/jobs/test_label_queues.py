"""Labels count for every job that has the outputs that people saw, even in queues that an earlier version stored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.labels.queues import LabelQueues
from evaluator_host.platform.labels.table import Labels
from evaluator_host.types.jobs import Target
from evaluator_host.types.labels import LabelTask
from tests.jobs.desk import OK, WORKSPACE, Desk, opened
from tests.tables import tables


@asynccontextmanager
async def label_queues(database_url: str, folder: Path) -> AsyncIterator[tuple[Desk, LabelQueues]]:
    async with opened(database_url, folder) as desk:
        known, store = tables(desk.store), desk.store
        datasets = DatasetService(
            known.datasets, desk.folder, desk.processes, store.usage, max_bytes=1 << 20, max_row_bytes=1 << 20
        )
        yield desk, LabelQueues(Labels(store.database), known.jobs, desk.results, desk.reader, datasets, store.usage)


@pytest.mark.long
async def test_a_queue_that_version_1_0_0_stored_counts_for_the_outputs_of_its_job(
    database_url: str, tmp_path: Path
) -> None:
    async with label_queues(database_url, tmp_path) as (desk, queues):
        rows = [{"a": "1", "b": "0"}]
        first = await desk.board.create_job(JobSpec([OK], rows, {"outputs": "a"}), WORKSPACE)
        specs = [
            JobSpec([OK], first.dataset, {"outputs": "a"}),
            JobSpec([OK], first.dataset, {"outputs": "b"}),
            JobSpec([OK], first.dataset, target=Target("http://127.0.0.1:9/v1", "m", prompt_template="{{ a }}")),
        ]
        same, other, asked = [await desk.board.create_job(spec, WORKSPACE) for spec in specs]
        content = '{"task":{},"dataset":null}'
        for name, job_id in (("of-a-job", first.id), ("of-rows", None)):
            await queues.labels.add_queue(
                WORKSPACE, name, [0], dataset_id=first.dataset, job_id=job_id, own_outputs=False, content=content
            )
        counting = [
            [one.name async for part in queues.list_queues(WORKSPACE, job=job.id) for one in part]
            for job in (same, other, asked)
        ]
        assert [sorted(names) for names in counting] == [["of-a-job", "of-rows"], ["of-rows"], []]
        for job in (first, same, other, asked):
            await desk.ended(job)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("columns", "same", "other"),
    [
        ("output", [None, "output", "{{ output }}"], ["a", "{{ output }}!"]),
        ("outputs output", [None, "outputs", "{{outputs}}"], ["output"]),
        ("answer", ["answer", "{{ answer }}"], ["a"]),
    ],
)
async def test_labels_count_for_jobs_whose_mapping_shows_the_same_outputs(
    database_url: str, tmp_path: Path, columns: str, same: list[str | None], other: list[str]
) -> None:
    async with label_queues(database_url, tmp_path) as (desk, queues):
        made = [dict.fromkeys([*columns.split(), "a"], "1")]
        dataset: str | None = None
        jobs = []
        for source in [*same, *other]:
            spec = JobSpec([OK], dataset or made, {} if source is None else {"outputs": source})
            jobs.append(await desk.board.create_job(spec, WORKSPACE))
            dataset = jobs[0].dataset
        names = [f"queue-{number}" for number in range(len(same))]
        for name, job in zip(names, jobs, strict=False):
            await queues.create_queue(WORKSPACE, name, LabelTask(), job=job.id)
        counting = [
            {one.name async for part in queues.list_queues(WORKSPACE, job=job.id) for one in part} for job in jobs
        ]
        assert counting == [set(names)] * len(same) + [set()] * len(other)
        for job in jobs:
            await desk.ended(job)
