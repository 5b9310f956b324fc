"""Workspaces take turns, and no workspace gets every slot if there is another workspace."""

import asyncio
from pathlib import Path

from evaluator_host.engine.packages.tools import in_turn
from evaluator_host.engine.system.processes import Command
from evaluator_host.engine.system.turns import Turns


class Log:
    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self.gate = asyncio.Event()

    def build(self, workspace: str) -> "asyncio.Task[None]":
        return asyncio.create_task(self._build(workspace))

    async def _build(self, workspace: str) -> None:
        async with self.turns.turn(workspace):
            self.begun.append(workspace)
            await self.gate.wait()
            await asyncio.sleep(0)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_workspace_never_has_every_turn_once_there_is_another() -> None:
    log = Log(Turns(2))
    loud = [log.build("loud") for _ in range(3)]
    await settle()
    assert log.begun == ["loud", "loud"], "a workspace that is alone may have both slots"
    log.gate.set()
    await asyncio.gather(*loud, log.build("quiet"))
    log.gate.clear()
    log.begun.clear()
    loud = [log.build("loud") for _ in range(3)]
    await settle()
    assert log.begun == ["loud"]
    quiet = log.build("quiet")
    await settle()
    assert log.begun == ["loud", "quiet"]
    log.gate.set()
    await asyncio.gather(*loud, quiet)


async def test_turns_go_round() -> None:
    log = Log(Turns(1))
    first = log.build("a")
    await settle()
    rest = [log.build(name) for name in "aaabbc"]
    await settle()
    log.gate.set()
    await asyncio.gather(first, *rest)
    assert "".join(log.begun) == "aabcaba"


async def test_a_caller_that_gives_up_does_not_use_up_a_turn() -> None:
    log = Log(Turns(1))
    first = log.build("a")
    await settle()
    second, third = log.build("a"), log.build("a")
    await settle()
    second.cancel()
    first.cancel()
    await asyncio.wait([first, second])
    log.gate.set()
    await third
    assert log.begun == ["a", "a"]


async def test_one_workspaces_look_ups_leave_a_process_to_another(tmp_path: Path) -> None:
    turns = Turns(3)
    sleep, true = (
        Command((*words,), tmp_path, {"PATH": "/usr/bin:/bin"}) for words in (("/bin/sleep", "60"), ("/bin/true",))
    )
    assert (await in_turn(turns, "quiet")(true, 60)).code == 0
    loud = [asyncio.create_task(in_turn(turns, "loud")(sleep, 60)) for _ in range(6)]
    await settle()
    assert (await in_turn(turns, "quiet")(true, 60)).code == 0
    assert not any(task.done() for task in loud)
    for task in loud:
        task.cancel()
    await asyncio.wait(loud)
