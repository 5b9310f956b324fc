"""A search for a string in a job's rows does not delay other requests, because rows are not decoded or compared on the
event loop.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from anyio import CancelScope, move_on_after

from evaluator_host.engine.system.memory import MemoryBudget
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.results import routes, row_previews, row_reader
from evaluator_host.platform.jobs.results.table import Filter, Results
from evaluator_host.types.errors import Busy
from tests.jobs.desk import ON_EACH_DATABASE, WORKSPACE, Desk
from tests.tables import tables


class Gate:
    """A gate at which a search waits until the test opens the gate. If the search ran on the event loop, it would wait
    forever.
    """

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self._open.wait(10), "no other request was answered while the search waited"

    def open(self) -> None:
        self._open.set()


class GatedText(str):
    """A stored result that can be decoded only once a gate is open."""

    __slots__ = ("gate",)
    gate: Gate

    def encode(self, *_: Any) -> bytes:
        self.gate.wait()
        return super().encode()


class GatedRow(dict[str, Any]):
    """A row of a data set whose values can be read only once a gate is open."""

    gate: Gate

    def values(self) -> Any:
        self.gate.wait()
        return super().values()


class GatedResults(Results):
    """The results on a host. Decoding one of them waits at a gate."""

    gate: Gate

    async def page(self, *arguments: Any, **named: Any) -> tuple[list[StoredResult], str | None]:
        found, cursor = await super().page(*arguments, **named)
        return [replace(one, result=_gated(GatedText(one.result), self.gate)) for one in found], cursor


class GatedFolder(RowsFolder):
    """The data sets on a host. Comparing the values of a row waits at a gate."""

    gate: Gate

    def some(
        self, dataset_id: str, numbers: Iterable[int], *, most_bytes: int | None = None
    ) -> dict[int, dict[str, Any]]:
        found = super().some(dataset_id, numbers, most_bytes=most_bytes)
        return {number: _gated(GatedRow(row), self.gate) for number, row in found.items()}


def _gated(one: Any, gate: Gate) -> Any:
    one.gate = gate
    return one


@pytest.mark.sampled(2)
@pytest.mark.parametrize("where", ["decoded", "compared"])
async def test_another_request_is_answered_in_the_middle_of_a_search(where: str, desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"] * 6))
    gate, results, folder = Gate(), tables(desk.store).results, desk.folder
    if where == "decoded":
        results = _gated(GatedResults(results._database), gate)
    else:
        folder = _gated(GatedFolder(folder.path), gate)
    read = replace(desk.reader, results=results, folder=folder)
    search = asyncio.create_task(read.page(WORKSPACE, job.id, Filter(), text="OK", limit=4))
    assert await asyncio.to_thread(gate.reached.wait, 10)
    assert (await desk.board.get_job(WORKSPACE, job.id)).progress.done == 6
    assert not search.done()
    gate.open()
    page = await search
    assert [row.index for row in page.rows] == [0, 1, 2, 3]
    rest = await read.page(WORKSPACE, job.id, Filter(), text="OK", limit=4, cursor=page.next_cursor)
    assert ([row.index for row in rest.rows], rest.next_cursor) == ([4, 5], None)


@pytest.mark.parametrize("text", [None, "OK", "nothing has this text"])
async def test_a_page_reserves_memory_before_rows_are_decoded(text: str | None, desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok" + "x" * 30_000] * 6))
    read = desk.reader
    budget = MemoryBudget(8 << 20)
    with budget.hold(WORKSPACE) as memory:
        await read.page(WORKSPACE, job.id, Filter(), text=text, memory=memory)
        assert budget.used_bytes > 6 * 30_000
    full = MemoryBudget(600_000)
    with full.hold("another") as other, full.hold(WORKSPACE) as memory:
        other.reserve(400_000)
        with pytest.raises(Busy):
            await read.page(WORKSPACE, job.id, Filter(), text=text, memory=memory)


async def test_each_part_of_a_download_takes_a_turn(desk: Desk) -> None:
    job = await desk.ended(await desk.start(["ok"]))
    read = replace(desk.reader, turns=Turns(1))
    async with aclosing(read.every(WORKSPACE, job.id, Filter())) as parts:
        async with read.turns.turn("other"):
            part = asyncio.ensure_future(anext(parts))
            assert not (await asyncio.wait([part], timeout=0.2))[0]
        assert [row.index for row in await part] == [0]


@pytest.mark.parametrize("parts", [[b"header" * 1000, b"", b"rest"], [b"a", b"b"]])
async def test_a_download_whose_rows_do_not_match_for_long_sends_something(
    parts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_SILENT_S", 0.001)
    silent = asyncio.Event()

    async def rest() -> AsyncGenerator[bytes, None]:
        for part in parts[1:]:
            await silent.wait()
            yield part

    sent = b""
    async for piece in routes._whole(parts[0], rest()):
        if piece and len(sent + piece) > max(0, len(parts[0]) - routes._HELD_BYTES):
            silent.set()
        sent += piece
    assert sent == b"".join(parts)


async def test_a_download_that_is_cancelled_closes_what_it_reads() -> None:
    closed = asyncio.Event()

    async def rest() -> AsyncGenerator[bytes, None]:
        try:
            await asyncio.sleep(60)
            yield b""
        finally:
            with CancelScope(shield=True):
                await asyncio.sleep(0.05)
            closed.set()

    with move_on_after(0.05):  # cancels again and again, as Starlette does when a client hangs up
        async for piece in routes._whole(b"", rest()):
            assert piece == b""
    assert closed.is_set()


@ON_EACH_DATABASE
async def test_pages_end_at_a_number_of_bytes_and_together_have_every_row(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages end at a limit of bytes, and together have every row. Rows and results each have such a limit, since rows
    alone or results alone could fill the host's memory.
    """
    job = await desk.ended(await desk.start(["ok" + str(number) * 3000 for number in range(6)]))
    read = desk.reader
    chunks = [[row.index for row in rows] async for rows in read.every(WORKSPACE, job.id, Filter())]
    assert chunks == [[0, 1, 2, 3, 4, 5]]
    monkeypatch.setattr(row_reader, "PART_BYTES", 9000)
    chunks = [[row.index for row in rows] async for rows in read.every(WORKSPACE, job.id, Filter())]
    assert max(map(len, chunks)) <= 3
    assert [index for rows in chunks for index in rows] == [0, 1, 2, 3, 4, 5]


def test_a_result_whose_json_was_cut_has_its_first_fields_and_those_of_its_columns() -> None:
    whole = (
        '{"status":"scored","score":0.5,"passed":null,"label":"a","reason":"' + "r" * 900 + '","metrics":{"score":0.5}'
    )
    cut = StoredResult(0, 3, "scored", 0.5, None, None, 1.5, '{"score":0.5}', whole + ',"value":"xxxxxxx')
    found = row_previews.decode_result(cut)
    assert (found["label"], found["reason"], found["value"]) == ("a", "r" * 900, None)
    assert (found["metrics"], found["error"], found["timing_ms"]["run"]) == ({"score": 0.5}, None, 1.5)
    earlier = row_previews.decode_result(replace(cut, result=whole[:40], status="failed", error_code="crashed"))
    assert (earlier["label"], earlier["error"]["code"]) == (None, "crashed")
