"""If the database fails or other callers interfere while a NeMo job is created, the job either goes on with its name
and its rows, or is cancelled.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.types.errors import NameTaken, StoreUnavailable
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.stored import DatasetReport
from evaluator_host.vendors.nemo.entities import Entities, Entity, EntityKind, Place
from evaluator_host.vendors.nemo.jobs import NemoJobs
from evaluator_host.vendors.nemo.spec import NemoJobIn
from tests.jobs.desk import ON_EACH_DATABASE, WORKSPACE, Desk, opened
from tests.tables import tables

PLACE = Place(WORKSPACE, EntityKind.JOB, "default")
METRIC = {
    "metric_type": "exact-match",
    "outputs": [{"name": "p", "value_json_schema": {"type": "number"}}],
    "payload": {"kind": "inline", "metric": {"type": "exact-match", "reference": "{{item.gold}}"}},
}
BODY = NemoJobIn.model_validate(
    {"name": "mine", "spec": {"metrics": [METRIC], "dataset": [{"gold": "a", "output": "a"}]}}
)


@pytest.fixture
async def desk(database_url: str, tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(database_url, tmp_path) as one:
        yield one


def jobs_of(desk: Desk, entities: Entities, datasets: DatasetService | None = None) -> NemoJobs:
    async def any_python(_: str | None) -> None:
        pass

    others: Any = None  # stands in for services that no job in these tests uses
    made = datasets or datasets_of(desk, DatasetService)
    given = {"board": desk.board, "rows": others, "datasets": made, "max_rows": 10, "require_python": any_python}
    return NemoJobs(entities, others, others, others, **given)


def datasets_of(desk: Desk, kind: type[DatasetService]) -> DatasetService:
    store = desk.store
    return kind(
        tables(store).datasets, desk.folder, desk.processes, store.usage, max_bytes=1 << 20, max_row_bytes=1 << 20
    )


@pytest.mark.sampled(4)
@ON_EACH_DATABASE
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    "ends", [StoreUnavailable("the answer was lost"), asyncio.CancelledError()], ids=["lost", "left"]
)
async def test_a_job_goes_on_if_it_was_stored_though_nobody_was_told(
    desk: Desk, ends: BaseException, *, stored: bool
) -> None:
    class Lost(Entities):
        async def add_entity(self, place: Place, name: str, content: dict[str, Any]) -> Entity:
            if stored:
                await super().add_entity(place, name, content)
            raise ends

    for _ in range(2):  # these jobs keep the host busy, so that the job of the test waits
        await desk.reached(await desk.start(["hang"]), status=JobStatus.RUNNING)
    entities = Lost(tables(desk.store).jobs._database, desk.store.usage)
    with pytest.raises(type(ends)):
        await jobs_of(desk, entities).create(WORKSPACE, "default", BODY)
    job, *_ = await desk.board.list_jobs(WORKSPACE)
    assert job.status is (JobStatus.QUEUED if stored else JobStatus.CANCELLED)
    found = await entities.find_entity(PLACE, "mine")
    assert (found is not None and found.content["job_id"] == job.id) == stored


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ended", [True, False])
async def test_a_job_whose_name_was_taken_meanwhile_is_cancelled(desk: Desk, *, ended: bool) -> None:
    class Taken(Entities):
        async def add_entity(self, place: Place, name: str, content: dict[str, Any]) -> Entity:
            await super().add_entity(place, name, {**content, "job_id": "job_of_another"})
            if ended:
                await desk.ended(await desk.board.get_job(WORKSPACE, content["job_id"]))
            return await super().add_entity(place, name, content)

    for _ in range(0 if ended else 2):
        await desk.reached(await desk.start(["hang"]), status=JobStatus.RUNNING)
    with pytest.raises(NameTaken):
        await jobs_of(desk, Taken(tables(desk.store).jobs._database, desk.store.usage)).create(
            WORKSPACE, "default", BODY
        )
    job, *_ = await desk.board.list_jobs(WORKSPACE)
    # jobs fail here, because this host installs no packages
    assert job.status is (JobStatus.FAILED if ended else JobStatus.CANCELLED)


async def test_rows_that_are_swept_away_before_the_job_is_made_are_stored_again(desk: Desk) -> None:
    swept: list[str] = []

    class Swept(DatasetService):
        async def add_unnamed(self, *args: Any) -> DatasetReport:
            made = await super().add_unnamed(*args)
            if not swept:  # this clean-up runs after any data set or job is deleted
                await self.store.forget_unused(remove=swept.append)
            return made

    made = jobs_of(desk, Entities(tables(desk.store).jobs._database, desk.store.usage), datasets_of(desk, Swept))
    found = await made.create(WORKSPACE, "default", BODY)
    (job,) = await desk.board.list_jobs(WORKSPACE)
    assert len(swept) == 1
    assert (found["name"], found["status"] in ("created", "pending", "active", "error")) == ("mine", True)
    assert [row for _, row in desk.folder.rows(job.dataset)] == [{"inputs": BODY.spec.dataset[0]}]
    assert swept[0] != job.dataset
