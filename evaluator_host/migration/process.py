"""Starts the process that parses and reads its answer; owns how long it may take and how many there are at once."""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from evaluator_host.migration.draft import Rewritten, Wish
from evaluator_host.migration.syntax import Unreadable
from evaluator_host.model.errors import MachineExhausted
from evaluator_host.model.evaluator import Language
from evaluator_host.system.processes import Command, run

_TIMEOUT_S: Final = 60.0  # wall clock; the process itself may use 20 s of a processor
_AT_ONCE: Final = 2
_read_answer: Final = TypeAdapter(Rewritten).validate_python
_turns = asyncio.Semaphore(_AT_ONCE)


async def rewrite(code: str, language: Language, wish: Wish) -> Rewritten:
    """Rewrite a program, in a process of its own.

    Raises:
      Unreadable: it cannot be rewritten; the text says why.
      MachineExhausted: no process can be started.
    """
    asked = json.dumps({"code": code, "language": language, "wish": asdict(wish)})
    async with _turns:
        answer = await _ask(asked.encode())
    if "refused" in answer:
        refused = answer["refused"]
        raise Unreadable(refused["message"], refused["line"], missing=refused.get("missing", False))
    try:
        return _read_answer(answer)
    except ValidationError as error:
        raise Unreadable("the process that parses it broke down") from error


async def _ask(asked: bytes) -> dict[str, Any]:
    argv = (sys.executable, "-I", "-m", "evaluator_host.migration.worker")
    try:
        finished = await run(Command(argv, Path.cwd(), {}, stdin=asked), _TIMEOUT_S)
    except TimeoutError as error:
        raise Unreadable("parsing it takes too long") from error
    except OSError as error:
        raise MachineExhausted(f"no process to parse in can be started: {error.strerror}") from error
    try:
        answer = json.loads(finished.stdout)
    except ValueError as error:
        raise Unreadable("it needs more memory or time to be parsed than it may have") from error
    return answer if isinstance(answer, dict) else {}
