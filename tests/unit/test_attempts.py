"""After a sandbox is lost, the same rule decides whether single rows, batches and rows that are scored together are
tried again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.model_requests import Ask
from evaluator_host.engine.pool import Pool
from evaluator_host.engine.sandbox.session import RunnerGaveUp, Sandbox
from evaluator_host.engine.service import Service, attempts, calls
from evaluator_host.engine.service.attempts import each
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.types.errors import Busy, HostBusy, SandboxLost
from evaluator_host.types.evaluator import Contract, Evaluator, Limits, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Failed, Loaded
from tests.fake_runner import FakeBackend
from tests.no_packages import NoPackages
from tests.unit.pools import opened

OK = Evaluator("ok")
CRASHED = Failed(EvaluationError(ErrorCode.CRASHED, "the runner gave up"))


@asynccontextmanager
async def host(folder: Path) -> AsyncIterator[tuple[Service, FakeBackend]]:
    async with opened(max_per_evaluator=1) as (pool, backend):
        yield service_on(pool, folder), backend


def service_on(pool: Pool, folder: Path, **more: Any) -> Service:
    return Service(Settings(data_dir=folder), pool, Metrics(), NoPackages(), LimitedProcesses(), **more)  # type: ignore[arg-type]


def words_of(backend: FakeBackend) -> list[str]:
    return [call["args"][1] for link in backend.links for call in link.calls]


async def test_a_row_whose_sandbox_is_lost_is_called_once_more_and_then_failed(tmp_path: Path) -> None:
    async with host(tmp_path) as (service, backend):
        found = await service.evaluate(OK, Row(outputs="lost"))
        assert (found.error.code, words_of(backend)) == (ErrorCode.SANDBOX_LOST, ["lost", "lost"])


@pytest.mark.parametrize("word", ["killed", "slain"])
async def test_a_row_whose_runner_or_process_is_killed_is_called_once_more_and_then_crashed(
    word: str, tmp_path: Path
) -> None:
    async with host(tmp_path) as (service, backend):
        found = await service.evaluate(OK, Row(outputs=word))
        assert (found.error.code, words_of(backend)) == (ErrorCode.CRASHED, [word, word])
        assert "SIGKILL" in found.error.message
        found = await service.evaluate_batch(OK, [Row(outputs=given) for given in ("a", word, "b")])
        assert [one.status for one in found] == ["scored", "failed", "scored"]


async def test_rows_behind_a_lost_one_are_neither_lost_nor_scored_twice(tmp_path: Path) -> None:
    async with host(tmp_path) as (service, backend):
        found = await service.evaluate_batch(OK, [Row(outputs=word) for word in ("a", "lost", "b", "c")])
        assert [one.status for one in found] == ["scored", "failed", "scored", "scored"]
        assert found[1].error.code is ErrorCode.SANDBOX_LOST
        assert words_of(backend).count("lost") == 2


async def test_a_row_that_gets_no_time_is_called_in_three_sandboxes_and_costs_no_other_row(tmp_path: Path) -> None:
    quick = replace(OK, limits=Limits(timeout_s=0.05))
    async with host(tmp_path) as (service, backend):
        with pytest.raises(HostBusy) as raised:
            await service.evaluate(quick, Row(outputs="late"))
        assert (raised.value.status, words_of(backend), len(backend.links)) == (503, ["late"] * 3, 3)
        found = await service.evaluate_batch(quick, [Row(outputs=word) for word in ("a", "late", "b", "c")])
        assert [one.error and one.error.code for one in found] == [None, ErrorCode.HOST_BUSY, None, None]
        assert words_of(backend).count("late") == 6


async def test_a_load_that_gets_no_time_refuses_rows_that_have_not_begun_and_fails_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for starvings in (3, 4):
        _Loads(monkeypatch, *(HostBusy("no processor time") for _ in range(starvings)))
        async with host(tmp_path) as (service, _):
            if starvings == 4:
                with pytest.raises(Busy):
                    await service.evaluate_batch(OK, [Row(outputs="a")])
            else:
                assert (await service.evaluate_batch(OK, [Row(outputs="a")]))[0].status == "scored"
        monkeypatch.undo()


class _Loads:
    """Fails one load after another with the given errors; then a load succeeds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *errors: SandboxLost | HostBusy) -> None:
        self.count, self._errors, self._load = 0, list(errors), Sandbox.load
        loads = self

        async def load(sandbox: Sandbox, request: object, **_: object) -> Loaded | Failed:
            return await loads.load(sandbox, request)

        monkeypatch.setattr(Sandbox, "load", load)
        monkeypatch.setattr(attempts, "_PAUSES_S", (0.0, 0.0, 0.0))

    async def load(self, sandbox: Sandbox, request: object) -> Loaded | Failed:
        self.count += 1
        if self._errors:
            raise self._errors.pop(0)
        return await self._load(sandbox, request)


@pytest.mark.parametrize("batch", [False, True])
async def test_a_sandbox_that_is_lost_while_it_loads_is_replaced_three_times(
    batch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for losses, status in ((3, "scored"), (4, "failed")):
        loads = _Loads(monkeypatch, *(SandboxLost("killed") for _ in range(losses)))
        async with host(tmp_path) as (service, _):
            row = Row(outputs="a")
            found = (await service.evaluate_batch(OK, [row]))[0] if batch else await service.evaluate(OK, row)
            assert (found.status, loads.count) == (status, 4)
        monkeypatch.undo()


@pytest.mark.parametrize("batch", [False, True])
async def test_a_runner_that_gives_up_twice_as_it_loads_is_the_evaluators_own_failure(
    batch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = _Loads(monkeypatch, RunnerGaveUp(CRASHED), RunnerGaveUp(CRASHED))
    async with host(tmp_path) as (service, _):
        row = Row(outputs="a")
        found = (await service.evaluate_batch(OK, [row]))[0] if batch else await service.evaluate(OK, row)
        assert (found.error.code, loads.count) == (ErrorCode.CRASHED, 2)


async def test_a_runner_that_is_killed_as_it_loads_is_replaced_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that is killed while it loads code is replaced three times. Without these replacements, two killed
    runners could fail all of an evaluator's rows in a job.
    """
    for kills, status in ((3, "scored"), (4, "failed")):
        loads = _Loads(monkeypatch, *(RunnerGaveUp(CRASHED, killed=True) for _ in range(kills)))
        async with host(tmp_path) as (service, _):
            found = await service.evaluate_batch(OK, [Row(outputs="a")])
            assert (found[0].status, loads.count) == (status, 4)
        monkeypatch.undo()


@pytest.mark.parametrize("crashes", [1, 2])
@pytest.mark.parametrize("verb", ["evaluate", "evaluate_batch", "check"])
async def test_a_load_that_crashes_is_tried_once_more(
    verb: str, crashes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load that crashes is tried once more: something other than the code may have killed the runner, and one killed
    runner must not fail a thousand rows.
    """
    load, loads = Sandbox.load, []

    async def crashing(sandbox: Sandbox, request: object, **_: object) -> Loaded | Failed:
        loads.append(request)
        return CRASHED if len(loads) <= crashes else await load(sandbox, request)

    monkeypatch.setattr(Sandbox, "load", crashing)
    async with host(tmp_path) as (service, _):
        match verb:
            case "evaluate":
                errors = [(await service.evaluate(OK, Row(outputs="a"))).error]
            case "evaluate_batch":
                errors = [one.error for one in await service.evaluate_batch(OK, [Row(outputs="a")] * 3)]
            case _:
                errors = list((await service.check(OK)).problems) or [None]
    assert {error and error.code for error in errors} == ({ErrorCode.CRASHED} if crashes == 2 else {None})
    assert len(loads) == 2


async def test_rows_together_are_drawn_once_and_called_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, calls, drawn = Sandbox.load, [], []

    async def together(self: Sandbox, request: object, **_: object) -> Loaded | Failed:
        return replace(await load(self, request), contract=Contract("nemo"), together=True)

    async def lost(_self: Sandbox, **_more: object) -> None:
        raise SandboxLost("killed")

    async def rows() -> AsyncIterator[Row]:
        async for row in each([Row(outputs="a"), Row(outputs="b")]):
            drawn.append(row)
            yield row

    monkeypatch.setattr(Sandbox, "load", together)
    monkeypatch.setattr(Sandbox, "send", lambda _self, body, **_more: calls.append(body))
    monkeypatch.setattr(Sandbox, "receive", lost)
    async with host(tmp_path) as (service, _):
        found = await service.score_together(OK, rows())
        assert found.error.code is ErrorCode.SANDBOX_LOST
        assert (len(drawn), len(calls), calls[0] == calls[-1]) == (2, 2, True)


class _BrokenModels:
    """Access to models that always fails because of a fault in the host."""

    async def answer(self, _ask: Ask, _workspace: str) -> None:
        raise ZeroDivisionError


@pytest.mark.parametrize("batch", [False, True])
async def test_a_fault_of_the_host_that_asks_models_ends_the_rows_that_wait_for_them(
    batch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "asked_for", lambda *_: (Ask("judge", "https://models.test", "m", None, {}, 0, 1.0),))
    async with opened() as (pool, _):
        service = service_on(pool, tmp_path, models=_BrokenModels())
        work = service.evaluate_batch(OK, [Row(outputs="a")] * 3) if batch else service.evaluate(OK, Row(outputs="a"))
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(work, 10)
