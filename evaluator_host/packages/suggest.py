"""The exact pin that a refused one probably meant: the newest version that matches, when the index answers in time."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import anyio.to_thread

from evaluator_host.model.errors import HostError, Problem
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.common_names import close_name
from evaluator_host.packages.index import IndexSettings
from evaluator_host.packages.lock import Target
from evaluator_host.packages.npm import syntax as npm_syntax
from evaluator_host.packages.npm.resolve import matching
from evaluator_host.packages.pins import Pin, RawPin, spelled
from evaluator_host.packages.pip import syntax as pip_syntax
from evaluator_host.packages.pip.resolve import newest
from evaluator_host.packages.tools import Tools, installed_tools
from evaluator_host.system import processes

TIMEOUT_S: Final = 10.0  # a refusal may be this much later for a better hint; on an idle machine it takes 1 s
_MAX_LOOKUPS: Final = 20
_AT_ONCE: Final = 3
_FIELD: Final = re.compile(r"packages\[(\d+)\]")
_VERSION: Final = re.compile(r"(==)?\d[\w.!+-]*")


K = TypeVar("K")


async def suggest(
    problems: Sequence[Problem],
    raw: Sequence[RawPin],
    language: Language,
    *,
    target: Target,
    index: IndexSettings,
    tools: Tools | None = None,
    timeout_s: float = TIMEOUT_S,
) -> tuple[Problem, ...]:
    """Return the problems of an `InvalidPin` with better hints; those that the index does not answer stay as they are.

    Args:
      problems: Of `InvalidPin`, `field` being `packages[i]`.
      raw: What was given to `pins.parse`.
      language: Of the evaluator.
      target: The runtime; a hint has a wheel for it.
      index: Where packages come from.
      tools: Where uv and npm lie; by default what is installed.
      timeout_s: For all of them together. Silence of the index is no error.
    """
    texts = {}
    for place, problem in enumerate(problems[:_MAX_LOOKUPS]):
        if (text := _refused(problem, raw, language)) is not None:
            texts[place] = text
    look = Look(language, target=target, index=replace(index, timeout_s=timeout_s), tools=tools or installed_tools())
    hints: dict[int, str] = {}
    try:
        async with asyncio.timeout(timeout_s):
            await look.hints({place: (texts[place], problems[place].hint) for place in texts}, hints)
    except (HostError, TimeoutError):
        pass  # whoever answered in time has left a hint
    return tuple(replace(problem, hint=hints.get(place, problem.hint)) for place, problem in enumerate(problems))


async def newest_pins(
    names: Sequence[str], language: Language, *, target: Target, index: IndexSettings, tools: Tools | None = None
) -> dict[str, str]:
    """Return each name pinned to its newest version for the target, those left out of which the index has none.

    Nothing is there when the index does not answer within `index.timeout_s`.
    """
    look = Look(language, target=target, index=index, tools=tools or installed_tools())
    found: dict[str, str] = {}
    try:
        async with asyncio.timeout(index.timeout_s):
            await look.newest({name: (name, "") for name in names}, found)
    except (HostError, TimeoutError):
        pass
    return found


class Look:
    """Asks the index of one language: for Python a process each, few at once; for npm one process for all."""

    def __init__(self, language: Language, *, target: Target, index: IndexSettings, tools: Tools) -> None:
        self._language = language
        self._target = target
        self._index = index
        self._tools = tools
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def hints(self, refused: Mapping[int, tuple[str, str | None]], into: dict[int, str]) -> None:
        """Add the newest match of each refused text (with the hint at hand), else of the name it probably meant."""
        wanted = await self._ranges([text for text, _ in refused.values()])
        asked = {}
        for (place, (_, hint)), one in zip(refused.items(), wanted, strict=True):
            if one is not None and not (hint and _VERSION.fullmatch(one[1])):
                asked[place] = one  # else it named a version, only spelled wrong: the hint at hand says how
        await self.newest(asked, into)
        meant = {place: close_name(name.partition("[")[0], self._language) for place, (name, _) in asked.items()}
        await self.newest({place: (name, "") for place, name in meant.items() if name and place not in into}, into)

    async def newest(self, asked: Mapping[K, tuple[str, str]], into: dict[K, str]) -> None:
        """Add the newest pin of each `(name, range)` that has one."""
        if self._language is Language.PYTHON:
            async with asyncio.TaskGroup() as group:
                for key, (name, wanted) in asked.items():
                    group.create_task(self._newest_wheel(key, name, wanted, into))
            return
        specs = [(name, wanted or "latest") for name, wanted in asked.values()]
        found = await matching(specs, index=self._index, tools=self._tools, run=processes.run)
        for (key, (name, _)), versions in zip(asked.items(), found, strict=True):
            if versions:
                into[key] = f"{name}@{versions[-1]}"

    async def _newest_wheel(self, key: K, name: str, wanted: str, into: dict[K, str]) -> None:
        try:
            async with self._turns:
                version = await newest(
                    name + wanted, target=self._target, index=self._index, tools=self._tools, run=processes.run
                )
        except HostError:
            return
        pinned = pip_syntax.read(f"{name}=={version}") if version else None
        if isinstance(pinned, tuple):
            into[key] = Pin(*pinned).text

    async def _ranges(self, texts: Sequence[str]) -> list[tuple[str, str] | None]:
        """Return name (with extras) and range of each refused text."""
        if self._language is not Language.PYTHON:
            return await anyio.to_thread.run_sync(npm_syntax.wanted, texts, self._tools)
        return [_range(text) for text in texts]


def _refused(problem: Problem, raw: Sequence[RawPin], language: Language) -> str | None:
    field = _FIELD.fullmatch(problem.field)
    if field is None or int(field[1]) >= len(raw):
        return None
    text = spelled(raw[int(field[1])], language)
    return text if isinstance(text, str) else None


def _range(text: str) -> tuple[str, str] | None:
    requirement = pip_syntax.wanted(text)
    if requirement is None:
        return None
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return requirement.name + extras, str(requirement.specifier)
