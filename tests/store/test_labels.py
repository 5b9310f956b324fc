"""A label queue hands out its rows one by one: people get the row that is already reserved for them, or else the first
row that is not reserved.
"""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from evaluator_host.platform.labels.table import Labels, LabelTable
from evaluator_host.platform.store.store import Store
from tests.store.records import WORKSPACE, dataset


@pytest.mark.parametrize("people", [("ann", "bob"), (None, "bob")])
async def test_each_person_gets_another_row_and_the_same_one_again(
    store: Store, people: tuple[str | None, str]
) -> None:
    labels, one = Labels(store.database), (await dataset(store, "rows")).id
    queue = await labels.add_queue(
        WORKSPACE, "queue", [3, 5, 8], dataset_id=one, job_id=None, own_outputs=False, content=""
    )

    async def taken(by: str | None) -> int | None:
        row = await labels.take_row(queue, by)
        return None if row is None else row.index

    ann, bob = people
    assert [await taken(by) for by in (bob, ann, ann, bob, "eve", "dan")] == [3, 5, 5, 3, 8, None]
    over = update(LabelTable).where(LabelTable.index == 5).values(held_until=datetime.now(UTC) - timedelta(seconds=1))
    await store.database.change_rows(over)
    assert [await taken(by) for by in ("dan", ann, bob)] == [5, None, 3]
