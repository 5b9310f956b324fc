"""Loads the attacks: one TOML file for each language and group in `attacks/`, and the programs beside it.

The programs are data. The host reads the programs as text, and never imports or compiles them.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluator_host.selftest.attack import SMALL, Attack, Expected, Group, Guard
from evaluator_host.types.evaluator import Isolation, Language
from evaluator_host.types.outcome import ErrorCode, Status

ATTACKS_DIR: Final = Path(__file__).with_name("attacks")

_TABLES: Final = "attacks.toml"
_INCLUDES: Final = "include"
_SUFFIXES: Final = {
    "python": {".py": Language.PYTHON},
    "javascript": {".js": Language.JAVASCRIPT, ".ts": Language.TYPESCRIPT},
}
_INCLUDE: Final = re.compile(r"^(?:#|//) include: (\S+)$", re.MULTILINE)
_REPEATED: Final = re.compile(r"\{\{('[^'\n]+')(?: \* ([\d_]+))?\}\}")  # matches a placeholder such as {{'(' * 50_000}}
_ATTACK: Final = re.compile(r"^(?:async )?(?:def|function|const) attack\b", re.MULTILINE)
_EVALUATE: Final = re.compile(r"\bevaluate\b|\bmodule\.exports\b")

_PYTHON_TAIL: Final = """

def evaluate(inputs, outputs, trace):
    if inputs["calm"]:
        return 1.0 if globals().get("left", lambda inputs: None)(inputs) else 0.25
    got = attack(inputs)
    return {"score": 1.0 if got else 0.0, "reason": str(got)[:400]}
"""
_JAVASCRIPT_TAIL: Final = """

async function evaluate(inputs, outputs, trace) {
  if (inputs.calm) return typeof left === "function" && (await left(inputs)) ? 1 : 0.25;
  const got = await attack(inputs);
  return { score: got ? 1 : 0, reason: String(got).slice(0, 400) };
}
"""


class _Outcome(BaseModel):
    """An expected outcome, given as a table in the TOML file."""

    model_config = ConfigDict(extra="forbid")

    status: Status | Literal["refused"]
    score: float | None = None
    codes: tuple[ErrorCode, ...] = ()
    mentions: str = ""
    truncated: bool | None = None
    log: str | None = None

    def expected(self) -> Expected:
        """Convert the outcome to an `Expected`.

        If the evaluator is refused, there is no result, and so no status.
        """
        status = None if self.status == "refused" else self.status
        return Expected(**{**dict(self), "status": status})


class _Table(BaseModel):
    """The TOML table of one attack, completed with the group's `[defaults]`."""

    model_config = ConfigDict(extra="forbid")

    why: str
    expected: tuple[_Outcome, ...] = (_Outcome(status=Status.SCORED, score=0.0),)
    limits: dict[str, int | float] = {}  # limits of the evaluator that differ from the default limits, `SMALL`
    without: frozenset[Guard] = frozenset()
    seen: str = ""
    like: tuple[str, ...] = ()
    calm: bool
    data: tuple[str, ...] = ()
    isolation: Isolation = Isolation.ROW
    safe: bool = True


@cache
def load_attacks(folder: Path = ATTACKS_DIR) -> tuple[Attack, ...]:
    """Return every attack, ordered by language, then by group, then as in the group's TOML file.

    Raises:
      ValueError: a file of the catalogue is wrong or missing; the message names it.
    """
    attacks: dict[str, Attack] = {}
    for language in _SUFFIXES:
        for group in _group_folders(folder / language):
            for attack in _attacks(group):
                if attack.name in attacks:
                    raise ValueError(f"{group / _TABLES}: another group has an attack {attack.name!r} too")
                attacks[attack.name] = attack
    return tuple(attacks.values())


def program_of(language: Language, body: str) -> str:
    """Return a complete evaluator for a program that defines `attack(inputs)`."""
    tail = _PYTHON_TAIL if language is Language.PYTHON else _JAVASCRIPT_TAIL
    return body.strip("\n") + "\n" + tail


def _group_folders(folder: Path) -> list[Path]:
    """Return the folder of each group of attacks in a language, in the order of `Group`."""
    found = {path.name for path in folder.iterdir() if path.is_dir()}
    for name in sorted(found - {*Group, _INCLUDES, "__pycache__"}):
        raise ValueError(f"{folder / name}: there is no group of that name; Group in attack.py lists the groups")
    return [folder / group for group in Group if group in found]


def _attacks(folder: Path) -> Iterator[Attack]:
    file = folder / _TABLES
    tables = _read_tables(file)
    defaults = tables.pop("defaults", {})
    unused = {path for path in folder.iterdir() if path.is_file()} - {file}
    for name, table in tables.items():
        program, language = _program_file(folder, name)
        witness = folder / f"{name}.witness{program.suffixes[0]}"
        unused -= {program, witness}
        text = _text(program)
        tailed = _ATTACK.search(text) is not None
        if not tailed and not _EVALUATE.search(text):
            raise ValueError(f"{program}: defines neither `attack(inputs)` nor `evaluate`")
        code = expand(text) if program.suffix == ".txt" else text
        try:
            yield Attack(
                name=name if language is Language.PYTHON else f"javascript-{name}",
                group=Group(folder.name),
                language=language,
                code=program_of(language, code) if tailed else code,
                witness=program_of(language, _text(witness)) if witness.exists() else None,
                **_details({"calm": tailed, **defaults, **table}),
            )
        except (TypeError, ValidationError) as error:
            raise ValueError(f"{file}: [{name}]: {_problems(error)}") from None
    for path in sorted(unused):
        raise ValueError(f"{path}: {_TABLES} has no attack of that name")


def _details(table: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an `Attack` that its table sets."""
    details = dict(_Table.model_validate(table))
    details["expected"] = tuple(one.expected() for one in details["expected"])
    details["limits"] = replace(SMALL, **details["limits"])
    return details


def _read_tables(file: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{file}: {error}") from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{file}: {name!r} is not a table; the file has a table for each attack, and [defaults]")
    return tables


def _problems(error: TypeError | ValidationError) -> str:
    if isinstance(error, TypeError):  # the table has a limit that does not exist
        return f"limits: {error}"
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())


def _program_file(folder: Path, name: str) -> tuple[Path, Language]:
    """Return the file of an attack's program, and the language that its suffix stands for."""
    found = [
        (path, language)
        for suffix, language in _SUFFIXES[folder.parent.name].items()
        for path in (folder / f"{name}{suffix}", folder / f"{name}{suffix}.txt")
        if path.exists()
    ]
    if len(found) != 1:
        wanted = " or ".join(f"{name}{suffix}" for suffix in _SUFFIXES[folder.parent.name])
        told = ", ".join(path.name for path, _ in found) or "none"
        raise ValueError(
            f"{folder / _TABLES}: [{name}] needs one program, {wanted}, in the same folder; there is {told}"
        )
    return found[0]


def _text(program: Path) -> str:
    """Return the text of a program, in which each include is replaced by the included file."""

    def included(match: re.Match[str]) -> str:
        file = program.parents[1] / _INCLUDES / match[1]
        if not file.exists():
            raise ValueError(f"{program}: there is no {file} to include")
        return file.read_text(encoding="utf-8").strip("\n")

    return _INCLUDE.sub(included, program.read_text(encoding="utf-8"))


def expand(text: str) -> str:
    """Return the text with each `{{'x' * 100}}` replaced by a hundred `x`."""
    return _REPEATED.sub(_repeated, text)


def _repeated(match: re.Match[str]) -> str:
    return str(ast.literal_eval(match[1])) * int(match[2] or 1)
