"""Makes the table in docs/coming-from.md from the dialects and the first lines of their pages: `python -m
tests.docs.coming_from` updates the page.
"""

import re
from typing import Final

from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.types.evaluator import Language
from evaluator_host.types.plugin_folders import OWN_CONTRACTS
from tests.docs.blocks import ROOT

PAGE: Final = ROOT / "docs" / "coming-from.md"
_TABLE: Final = re.compile(r"^\|.*?\n\n", re.MULTILINE | re.DOTALL)


def table() -> str:
    """Return the table, with a row for each platform, sorted by name."""
    rows = sorted(
        (_row(one.contract, one.languages) for one in all_dialects() if one.contract not in OWN_CONTRACTS),
        key=str.lower,
    )
    return "\n".join(["| platform | you paste | contract |", "|---|---|---|", *rows]) + "\n\n"


def _row(contract: str, languages: frozenset[Language]) -> str:
    file = f"dialects/{contract.replace('-', '_')}.md"
    text = (ROOT / "docs" / file).read_text("utf-8")
    platform, _, what = text.partition("\n")[0].removeprefix("# ").partition(": ")
    (paste,) = re.findall(r"^- Paste: (.*)$", text, re.MULTILINE)
    assert re.search(r"^- Recognised by: ", text, re.MULTILINE), file
    also = "" if languages == {Language.PYTHON} else "; JS, TS too"
    assert languages in ({Language.PYTHON}, set(Language)), contract
    return f"| [{platform}]({file}), {what} | {paste.rstrip('.')}{also} | `{contract}` |"


def written(page: str) -> str:
    """Return the page with an up-to-date table."""
    return _TABLE.sub(lambda _: table(), page, count=1)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
