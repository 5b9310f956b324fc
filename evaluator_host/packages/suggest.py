"""The exact pin that a refused one probably meant: the newest version that matches, when the index answers in time."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import anyio.to_thread

from evaluator_host.errors import HostError, Problem
from evaluator_host.model import Language
from evaluator_host.packages import npm_syntax, pip_syntax
from evaluator_host.packages import tools as processes
from evaluator_host.packages.index import IndexSettings
from evaluator_host.packages.known import close_name
from evaluator_host.packages.locked import Target
from evaluator_host.packages.npm_lock import matching
from evaluator_host.packages.pins import Pin, RawPin, spelled
from evaluator_host.packages.pip_lock import newest
from evaluator_host.packages.tools import Tools, installed_tools

TIMEOUT_S: Final = 6.0  # a refusal may be this much later for a better hint; a package of many versions takes npm 2 s
_MAX_LOOKUPS: Final = 20
_AT_ONCE: Final = 3
_FIELD: Final = re.compile(r"packages\[(\d+)\]")


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
    hints: dict[int, str] = {}
    turns = asyncio.Semaphore(_AT_ONCE)
    quick = replace(index, timeout_s=timeout_s)
    found_tools = tools or installed_tools()

    async def ask(place: int, problem: Problem) -> None:
        field = _FIELD.fullmatch(problem.field)
        if field is None or int(field[1]) >= len(raw):
            return
        text = spelled(raw[int(field[1])], language)
        if not isinstance(text, str):
            return
        async with turns:
            exact = await _exact(text, language, problem, target=target, index=quick, tools=found_tools)
        if exact is not None:
            hints[place] = exact

    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            for place, problem in enumerate(problems[:_MAX_LOOKUPS]):
                group.create_task(ask(place, problem))
    except TimeoutError:
        pass  # whoever answered in time has left a hint
    return tuple(replace(p, hint=hints.get(place, p.hint)) for place, p in enumerate(problems))


async def newest_pin(
    name: str, language: Language, *, target: Target, index: IndexSettings, tools: Tools | None = None
) -> str | None:
    """Return `name` pinned to its newest version for the target, or None when the index has none or does not answer."""
    found_tools = tools or installed_tools()
    try:
        async with asyncio.timeout(index.timeout_s):
            return await _newest(name, "", language, target=target, index=index, tools=found_tools)
    except (HostError, TimeoutError):
        return None


async def _exact(
    text: str, language: Language, problem: Problem, *, target: Target, index: IndexSettings, tools: Tools
) -> str | None:
    try:
        asked = await _range(text, language, tools)
        if asked is None:
            return None
        name, wanted = asked
        if problem.hint and re.fullmatch(r"(==)?\d[\w.!+-]*", wanted):
            return None  # it named a version, only spelled wrong: the hint at hand says how
        exact = await _newest(name, wanted, language, target=target, index=index, tools=tools)
        if exact is None and (meant := close_name(name.partition("[")[0], language)):
            exact = await _newest(meant, "", language, target=target, index=index, tools=tools)
    except HostError:
        return None
    return exact


async def _range(text: str, language: Language, tools: Tools) -> tuple[str, str] | None:
    """Return name (with extras) and range of a refused text."""
    if language is not Language.PYTHON:
        return await anyio.to_thread.run_sync(npm_syntax.wanted, text, tools)
    requirement = pip_syntax.wanted(text)
    if requirement is None:
        return None
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return requirement.name + extras, str(requirement.specifier)


async def _newest(
    name: str, wanted: str, language: Language, *, target: Target, index: IndexSettings, tools: Tools
) -> str | None:
    if language is Language.PYTHON:
        version = await newest(name + wanted, target=target, index=index, tools=tools, run=processes.run)
        pinned = pip_syntax.read(f"{name}=={version}") if version else None
        return Pin(*pinned).text if isinstance(pinned, tuple) else None
    found = await matching((name, wanted or "latest"), index=index, tools=tools, run=processes.run)
    return f"{name}@{found[-1]}" if found else None
