"""Reads the fenced blocks of the documentation, and lists the folders with documents."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, text and line."""

    language: str
    text: str
    line: int


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document in order, without the blocks that contain whole files."""
    text = document.read_text()
    return [
        Block(match[1], match[3], text.count("\n", 0, match.start()) + 1)
        for match in _BLOCK.finditer(text)
        if match[2] is None
    ]


def files(document: Path) -> dict[str, str]:
    """Return the content of each file in a document, by path. A block is a file if its first line has a path after the
    language.
    """
    return {match[2]: match[3] for match in _BLOCK.finditer(document.read_text()) if match[2] is not None}


def name(document: Path) -> str:
    """Return a document's name, for use in the ids of tests."""
    return str(document.relative_to(ROOT))


def read(relative: str) -> str:
    return (ROOT / relative).read_text()
