"""The corpus of legacy evaluators; each has its new code, and the messages about the migration."""

import json
from dataclasses import dataclass
from pathlib import Path

from evaluator_host.types.evaluator import Language

FOLDER = Path(__file__).parents[1] / "fixtures" / "migration"
SUFFIXES = {Language.PYTHON: "py", Language.JAVASCRIPT: "js", Language.TYPESCRIPT: "ts"}


@dataclass(frozen=True, slots=True)
class Case:
    """One legacy evaluator.

    `outcome` is a verdict, `refused` or `current`; `after` is the new code, or None; `unresolved` has pairs
    of a line (or None) and a message.
    """

    name: str
    language: Language
    outcome: str
    before: str
    after: str | None
    unresolved: tuple[tuple[int | None, str], ...]


def cases(language: Language) -> list[Case]:
    expected = json.loads((FOLDER / f"{language.value}.json").read_text("utf-8"))
    assert set(expected) == {file.name for file in (FOLDER / language.value).iterdir()}
    return [
        Case(
            name=name,
            language=language,
            outcome=one["outcome"],
            before=_read(FOLDER / language.value / name) or "",
            after=_read(FOLDER / f"{language.value}_new" / name),
            unresolved=tuple((line, message) for line, message in one["unresolved"]),
        )
        for name, one in expected.items()
    ]


def _read(file: Path) -> str | None:
    return file.read_bytes().decode() if file.exists() else None


ALL = [case for language in Language if (FOLDER / f"{language.value}.json").exists() for case in cases(language)]
