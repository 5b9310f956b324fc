"""The documentation contains each generated list only once. A report shows the number of words on all pages."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.types.outcome import ErrorCode
from evaluator_host.types.warnings import WARNINGS
from tests.docs import commands, routes
from tests.docs.blocks import ROOT, name
from tests.docs.words import report, words_by_section

CONTENTS = ROOT / "docs" / "README.md"  # page that lists every other page with its purpose
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path != CONTENTS]
MOST = 10
"""Maximum number of names from one generated list in a section of another page: a third of the shortest list."""


def _spans(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def _commands(text: str) -> set[str]:
    said = " ".join(_spans(text) | set(re.findall(r"evaluator-host [\w -]+", text)))
    return {one for one in _all_commands() if re.search(rf"\b{one}\b", said)}


@cache
def _all_commands() -> list[str]:
    return [one for one in commands.leaf_commands() if " " in one]


def _routes(text: str) -> set[str]:
    return {one for one in _all_routes() if re.search(rf"{re.escape(one)}(?![\w/{{])", text)}


@cache
def _all_routes() -> set[str]:
    return {path.rpartition(" ")[2] for path in _spans(routes.listed())}


def _platforms(text: str) -> set[str]:
    pages = {f"{one.contract.replace('-', '_')}.md" for one in all_dialects()}
    return {one for one in pages if re.search(rf"dialects/{one}\b|\({one}\b", text)}


LISTS: dict[str, tuple[str, Callable[[str], set[str]]]] = {
    "commands": ("docs/cli.md", _commands),
    "routes": ("docs/api.md", _routes),
    "platforms": ("docs/coming-from.md", _platforms),
    "settings": (
        "docs/settings.md",
        lambda text: {f"EVALUATOR_HOST_{one.upper()}" for one in Settings.model_fields} & _spans(text),
    ),
    "errors": ("docs/api.md", lambda text: {*ErrorCode} & _spans(text)),
    "warnings": ("docs/api.md", lambda text: {*WARNINGS} & _spans(text)),
}


def sections(page: Path) -> dict[str, str]:
    """Return the text below each heading of a page."""
    parts = re.split(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", LISTS)
def test_a_list_that_a_machine_makes_stands_on_one_page(kind: str) -> None:
    owner, names = LISTS[kind]
    assert len(names((ROOT / owner).read_text("utf-8"))) >= MOST, "the list must be on its own page"
    again = {
        f"{name(page)}#{heading}": sorted(found)
        for page in PAGES
        for heading, text in sections(page).items()
        if page != ROOT / owner and len(found := names(text)) > MOST
    }
    assert again == {}


def test_the_words_of_every_page_are_reported(record_property: Callable[[str, object], None]) -> None:
    counted = [page for pages in words_by_section().values() for page in pages]
    assert sorted(counted) == sorted(name(page) for page in [*PAGES, CONTENTS])
    record_property("words of the documentation", report())
    print(report())
