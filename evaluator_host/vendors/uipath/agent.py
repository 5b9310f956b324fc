"""Makes a sandbox program from a project's agent: packs the agent's files, finds its entry point, reads its output.

The host only packs the agent's code, and neither imports nor parses it; the sandbox unpacks it. Files that may contain
secrets or answers (hidden files, the eval sets) are not packed.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.packages.own_files import MOST_BYTES, is_sent, over_size
from evaluator_host.engine.system.files import reading
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Language, Limits
from evaluator_host.types.names import nearest_name
from evaluator_host.types.outcome import EvaluationResult, Status
from evaluator_host.vendors.uipath.executions import Execution
from evaluator_host.vendors.uipath.project import FOLDERS, read_json

AGENT_LIMITS: Final = Limits(timeout_s=60.0, memory_mb=512, result_kb=8192)

_PROGRAM: Final = RUNTIMES_DIR / "python" / "dialects" / "uipath" / "agent.py"
_PLACE: Final = '"@project@"'
_SUFFIXES: Final = frozenset(
    {".py", ".json", ".jsonl", ".txt", ".md", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".xml", ".html", ".sql"}
    | {".j2", ".jinja", ".jinja2", ".prompt", ".tmpl"}
)
_UNPACKED_BYTES: Final = 32 << 20
_MOST_FILES: Final = 2000


@dataclass(frozen=True, slots=True)
class AgentFunction:
    """A function of the agent: its file, relative to the project, and its name."""

    file: str
    function: str


def find_entry_point(root: Path, name: str | None) -> AgentFunction:
    """Return the agent's entry function: the one called `name` in `uipath.json`; with None, the only function.

    Raises:
      InvalidRequest: there is no such function, or `name` is None and there are several.
    """
    file = root / "uipath.json"
    if not file.is_file():
        raise InvalidRequest(
            f"there is no agent to run: {root} has no uipath.json with functions; add such a file, or give recorded "
            "executions with --executions FILE"
        )
    config = read_json(file)
    functions = config.get("functions") if isinstance(config, dict) else None
    if not isinstance(functions, dict) or not functions:
        raise InvalidRequest(
            f'{file} does not name a function to run; write {{"functions": {{"main": "main.py:main"}}}}, or give '
            "recorded executions with --executions FILE"
        )
    if name is None and len(functions) > 1:
        raise InvalidRequest(f"{file} names several functions; choose one with --entrypoint: {', '.join(functions)}")
    name = name or next(iter(functions))
    if name not in functions:
        meant = nearest_name(name, list(functions))
        hint = f"; did you mean {meant}?" if meant else f"; it has {', '.join(functions)}"
        raise InvalidRequest(f"{file} does not name a function {name!r}{hint}")
    return _entry_point(root, file, name, functions[name])


def agent_program(root: Path, entry: AgentFunction, *, packages: tuple[str, ...], limits: Limits) -> Evaluator:
    """Return an evaluator that runs an agent on the inputs of its row.

    Raises:
      InvalidRequest: the project has too many files, or they are too large.
    """
    files: dict[str, str] = {}
    size = 0
    for path in _files(root):
        content = _read(path)
        size += len(content)
        if len(files) == _MOST_FILES or size > _UNPACKED_BYTES:
            raise InvalidRequest(
                f"the agent in {root} has more than {_MOST_FILES} files or {_UNPACKED_BYTES >> 20} MB; "
                "run the agent yourself, and give its executions with --executions FILE"
            )
        files[str(path.relative_to(root))] = base64.b64encode(content).decode()
    packed = {"files": files, "file": entry.file, "function": entry.function}
    text = base64.b64encode(zlib.compress(json.dumps(packed).encode(), 9)).decode()
    if len(text) > MOST_BYTES:
        sizes = {name: len(content) for name, content in files.items()}
        raise InvalidRequest(over_size(root, "its agent", len(text), sizes))
    code = _PROGRAM.read_text("utf-8").replace(_PLACE, json.dumps(text), 1)
    return Evaluator(code, Language.PYTHON, Contract.EVALUATE, packages=packages, limits=limits)


def execution_of(item: str, result: EvaluationResult) -> Execution:
    """Convert a sandbox's outcome to the agent's execution: what the agent's program reported, or else an error."""
    if result.status is not Status.SCORED:
        error = result.error
        said = f"{error.code}: {error.message}" if error is not None else "the agent was not run"
        return Execution(item, error=said)
    told = result.value.get("details") if isinstance(result.value, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("spans"), list):
        return Execution(item, error="crashed: the sandbox did not send the result of an agent")
    spans = [span for span in told["spans"] if isinstance(span, dict)]
    seconds = told.get("seconds")
    execution = Execution(
        item,
        told.get("output"),
        trace={"spans": spans},
        seconds=seconds if isinstance(seconds, int | float) else None,
    )
    if told.get("error") is None:
        return execution
    hint = "; pin its package: --package NAME==VERSION" if "ModuleNotFoundError" in str(told["error"]) else ""
    return replace(execution, output=None, error=f"{told['error']}{hint}")


def _entry_point(root: Path, file: Path, name: str, value: Json) -> AgentFunction:
    path, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not path or not function.isidentifier():
        raise InvalidRequest(f"the function {name!r} in {file} is {value!r}, not FILE.py:FUNCTION")
    there = (root / path).resolve()
    if not there.is_file() or not there.is_relative_to(root.resolve()):
        raise InvalidRequest(
            f"the function {name!r} in {file} should be in {path}, but there is no such file in {root}"
        )
    return AgentFunction(str(there.relative_to(root.resolve())), function)


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        wanted = (name for name in folders if is_sent(here / name) and name not in FOLDERS)
        folders[:] = sorted(wanted)
        for name in sorted(files):
            path = here / name
            if not name.startswith(".") and path.suffix.lower() in _SUFFIXES and not path.is_symlink():
                yield path


def _read(path: Path) -> bytes:
    with reading(path):
        return path.read_bytes() if path.stat().st_size <= _UNPACKED_BYTES else b"\0" * (_UNPACKED_BYTES + 1)
