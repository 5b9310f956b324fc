"""Counts the words in each section of the documentation's table of contents: `python -m tests.docs.words` prints the
numbers.
"""

import re

from tests.docs.blocks import ROOT, read

README = "README"
CONTENTS = "contents"


def words_by_section() -> dict[str, dict[str, int]]:
    """Return the number of words of each page, by the section of docs/README.md that links to it."""
    found = {README: {"README.md": _words("README.md")}, CONTENTS: {"docs/README.md": _words("docs/README.md")}}
    for part in re.split(r"^## ", read("docs/README.md"), flags=re.MULTILINE)[1:]:
        section = part.partition("\n")[0]
        for page in dict.fromkeys(re.findall(r"\]\(([\w/-]+\.md)\)", part)):
            found.setdefault(section, {})[f"docs/{page}"] = _words(f"docs/{page}")
    return found


def _words(page: str) -> int:
    return len((ROOT / page).read_text("utf-8").split())


def report() -> str:
    """Return a line with the count for each section, and a line with the sum."""
    sums = {section: sum(pages.values()) for section, pages in words_by_section().items()}
    lines = [f"{count:6} {section}" for section, count in sums.items()]
    return "\n".join([*lines, f"{sum(sums.values()):6} in all"])


if __name__ == "__main__":
    print(report())
