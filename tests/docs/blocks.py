"""Fenced blocks of the documentation, and the places that hold documents."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, text and line."""

    language: str
    text: str
    line: int


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document in their order."""
    text = document.read_text()
    return [
        Block(match.group(1), match.group(2), text.count("\n", 0, match.start()) + 1) for match in _BLOCK.finditer(text)
    ]


def name(document: Path) -> str:
    """Return a document's name for test ids."""
    return str(document.relative_to(ROOT))


def read(relative: str) -> str:
    """Return the text of a document."""
    return (ROOT / relative).read_text()
