"""Recorded answers of models stay within a workspace's limit: the oldest answers are deleted. The sizes are not added
up again for each new answer.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evaluator_host.platform.models.table import RecordedAnswer
from evaluator_host.platform.store.store import Store, open_store
from tests.store.records import WORKSPACE
from tests.tables import tables

MOST_BYTES = 3200
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def store(database_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(database_url, tmp_path) as opened:
        yield opened


async def test_the_oldest_answers_go_before_the_limit_is_passed_by_much(store: Store) -> None:
    models, sizes = tables(store).models, []
    for n in range(120):
        one = RecordedAnswer(str(n), "judge", "x" * 50, BEGIN + timedelta(seconds=n))
        await models.add_answers(WORKSPACE, [one], most_bytes=MOST_BYTES)
        sizes.append((await models.count_answers(WORKSPACE))[1])
    assert 0.8 * MOST_BYTES < max(sizes) <= 17 / 16 * MOST_BYTES
    assert await models.find_answer(WORKSPACE, "0") is None
    assert await models.find_answer(WORKSPACE, "119") == "x" * 50
