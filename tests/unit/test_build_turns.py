"""Builds take turns: between workspaces, and never all of them for one."""

import asyncio

from evaluator_host.environments.build.build import BuildQueue


class Log:
    def __init__(self, turns: BuildQueue) -> None:
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
    log = Log(BuildQueue(2))
    loud = [log.build("loud") for _ in range(3)]
    await settle()
    assert log.begun == ["loud", "loud"], "alone, it has both"
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
    log = Log(BuildQueue(1))
    first = log.build("a")
    await settle()
    rest = [log.build(name) for name in "aaabbc"]
    await settle()
    log.gate.set()
    await asyncio.gather(first, *rest)
    assert "".join(log.begun) == "aabcaba"


async def test_who_gives_up_takes_no_turn_along() -> None:
    log = Log(BuildQueue(1))
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
