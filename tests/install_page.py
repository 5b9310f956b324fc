"""Finds the commands of docs/install.md, for the tests that run them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commands_of(heading: str, number: int = 0) -> list[str]:
    """Return the lines (one or two commands) of a block below a heading; `number` counts these blocks from 0."""
    section = (ROOT / "docs/install.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"```text\n(.*?)```", section, re.DOTALL)[number].splitlines()
    assert 1 <= len(lines) <= 2, lines
    return lines
