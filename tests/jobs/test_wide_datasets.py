"""Data sets with as many column names as a host allows, each as long as allowed, do not block the event loop when they
are listed.
"""

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.datasets.table import new_dataset_id
from tests.jobs.desk import WORKSPACE, opened
from tests.loop_watch import held_s, watching
from tests.tables import tables


@pytest.mark.long("tests/growth has lists of many records")
async def test_lists_of_wide_data_sets_do_not_hold_the_event_loop(database_url: str, tmp_path: Path) -> None:
    async with opened(database_url, tmp_path) as desk:
        known = tables(desk.store)
        shelf = DatasetService(
            known.datasets, desk.folder, desk.processes, desk.store.usage, max_bytes=1 << 20, max_row_bytes=1 << 20
        )
        first = await shelf.add_unnamed(WORKSPACE, [{"answer": "1", "gold": "1"}], "json")
        facts = (await known.datasets.get_dataset(WORKSPACE, first.id)).facts
        columns = tuple("a_" * 95 + str(number) for number in range(998))
        for number in range(20):
            wide = replace(facts, columns=(*columns, f"answer {number}", "gold"))
            await known.datasets.add_dataset(new_dataset_id(), WORKSPACE, f"wide{number}", wide)
        held = held_s()
        gc.collect()
        # a server also freezes its objects when it starts
        gc.freeze()
        with watching() as watch:
            shown = await shelf.get_dataset(WORKSPACE, "wide7")
            listed = [one async for part in shelf.list_datasets(WORKSPACE) for one in part]
            versions = await shelf.list_versions(WORKSPACE, "wide7")
        gc.unfreeze()
        assert (shown.outputs_column, shown.expected_column) == ("answer 7", "gold")
        assert [one.outputs_column for one in listed] == [f"answer {number}" for number in reversed(range(20))]
        assert versions == [shown]
        assert watch.longest_s < held, watch.longest
