"""Label queues of earlier versions: their labels count for jobs with the outputs that people saw."""

from pathlib import Path

from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.labels.queues import LabelQueues
from evaluator_host.platform.labels.table import Labels
from evaluator_host.types.jobs import Target
from tests.jobs.desk import OK, WORKSPACE, opened
from tests.tables import tables


async def test_a_queue_that_version_1_0_0_stored_counts_for_the_outputs_of_its_job(
    database_url: str, tmp_path: Path
) -> None:
    async with opened(database_url, tmp_path) as desk:
        known, store = tables(desk.store), desk.store
        reader = RowReader(
            known.jobs, known.results, known.datasets, desk.folder, desk.processes, outputs=known.outputs
        )
        datasets = DatasetService(
            known.datasets, desk.folder, desk.processes, store.usage, max_bytes=1 << 20, max_row_bytes=1 << 20
        )
        queues = LabelQueues(Labels(store.database), known.jobs, desk.results, reader, datasets, store.usage)
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
            [one.name for one in await queues.list_queues(WORKSPACE, job=job.id)] for job in (same, other, asked)
        ]
        assert [sorted(names) for names in counting] == [["of-a-job", "of-rows"], ["of-rows"], []]
        for job in (first, same, other, asked):
            await desk.ended(job)
