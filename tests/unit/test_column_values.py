"""The host decodes small rows itself to read a column; a limited process decodes large rows, and reads the same values."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets import rendering
from evaluator_host.platform.jobs.results.column_values import next_values
from evaluator_host.types.errors import LimitExceeded
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import encode_json

ROWS: list[dict[str, Any]] = [
    {"meta": {"city": city}} for city in ("Rome", 1, None, 10**30, ["a"], "x" * 300, ["x" * 300])
] + [{}]
VALUES = ["Rome", 1, None, 10**30, ["a"], "x" * 201, ['["' + "x" * 199], None]
LARGE = {"many values": {"meta": {"city": "Rome"}, "rest": [0] * 50_000}, "long": {"rest": "x" * (3 << 20)}}


class Counted(LimitedProcesses):
    """Limited processes that count their calls."""

    calls = 0

    async def call(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        return await super().call(*args, **options)


@pytest.fixture
async def processes() -> AsyncIterator[Counted]:
    async with Counted(most=1) as opened:
        yield opened


async def read(processes: LimitedProcesses, *rows: dict[str, Any]) -> dict[int, Json]:
    chunks = iter([[(number, encode_json(row) + b"\n") for number, row in enumerate(rows)]])
    values = await next_values(processes, "w", chunks, "meta.city")
    assert await next_values(processes, "w", chunks, "meta.city") == {}
    return values


async def test_small_rows_are_read_without_a_process(processes: Counted) -> None:
    assert await read(processes, *ROWS) == dict(enumerate(VALUES))
    assert processes.calls == 0


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
async def test_rows_beside_a_large_row_have_the_same_values(processes: Counted, large: dict[str, Any]) -> None:
    found = await read(processes, *ROWS, large)
    assert found == dict(enumerate([*VALUES, large.get("meta", {}).get("city")]))
    assert processes.calls == 1


async def test_an_error_of_a_large_row_does_not_name_templates(
    processes: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_LIMITS", replace(rendering._LIMITS, result_bytes=1))
    with pytest.raises(LimitExceeded, match=r"^the values of the column cannot be read: "):
        await read(processes, LARGE["long"])
