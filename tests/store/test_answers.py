"""Recorded answers of models stay within a workspace's limit: the oldest answers are deleted. The sizes are not added
up again for each new answer. An export reads them in parts.
"""

import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from evaluator_host.platform.models.table import PART_BYTES, RecordedAnswer
from evaluator_host.platform.store.store import Store
from tests.store.records import WORKSPACE
from tests.tables import tables

MOST_BYTES = 3200
OTHER = "other"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.sampled(2)
async def test_the_oldest_answers_go_before_the_limit_is_passed_by_much(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, sizes = tables(store).models, []
    for n in range(120):
        one = RecordedAnswer(str(n), "judge", "x" * 50, BEGIN + timedelta(seconds=n))
        await models.add_answers(WORKSPACE, [one], most_bytes=MOST_BYTES)
        sizes.append((await models.count_answers(WORKSPACE))[1])
    assert 0.8 * MOST_BYTES < max(sizes) <= 17 / 16 * MOST_BYTES
    assert await models.find_answer(WORKSPACE, "0") is None
    assert await models.find_answer(WORKSPACE, "119") == "x" * 50
    monkeypatch.setattr("evaluator_host.platform.models.table._PAGE", 7)
    count, _ = await models.count_answers(WORKSPACE)
    await models.add_answers(OTHER, [RecordedAnswer("119", "judge", "", BEGIN)], most_bytes=MOST_BYTES)
    assert await models.delete_answers(WORKSPACE) == count > 50
    assert (await models.count_answers(WORKSPACE), await models.count_answers(OTHER)) == ((0, 0), (1, 0))


@pytest.mark.sampled(2)
async def test_an_export_holds_few_large_answers_at_a_time(store: Store) -> None:
    models, large = tables(store).models, "x" * PART_BYTES
    for n in range(12):
        one = RecordedAnswer(f"{n:02}", "judge", large if n % 4 else "small", BEGIN)
        await models.add_answers(WORKSPACE, [one], most_bytes=1 << 30)
    tracemalloc.start()
    try:
        found = [(one.digest, len(one.content)) async for one in models.answers(WORKSPACE)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [(f"{n:02}", PART_BYTES if n % 4 else 5) for n in range(12)]
    assert peak < 6 * PART_BYTES, (
        "the export must not hold all answers at a time, which have nine times the size of a part"
    )
