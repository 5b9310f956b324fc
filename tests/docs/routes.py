"""Makes the list of routes in docs/api.md from the OpenAPI document: `python -m tests.docs.routes` writes it."""

import re
from typing import Final

from tests.described import described_app
from tests.docs.blocks import ROOT

PAGE: Final = ROOT / "docs" / "api.md"
VENDORS: Final = ("/apis/", "/v2/")  # routes of NVIDIA's client
_LIST: Final = re.compile(r"^- evaluate: .*?\n\n", re.MULTILINE | re.DOTALL)


def listed() -> str:
    """Return a line for each resource, with its paths and each path's methods."""
    found: dict[str, list[str]] = {}
    for path, methods in described_app().openapi()["paths"].items():
        if not path.startswith(VENDORS):
            (about,) = {tag for operation in methods.values() for tag in operation["tags"]}
            found.setdefault(about, []).append(f"`{' '.join(methods).upper()} {path}`")
    return "\n".join(f"- {about}: {', '.join(routes)}" for about, routes in found.items()) + "\n\n"


def written(page: str) -> str:
    """Return the page with an up-to-date list."""
    return _LIST.sub(lambda _: listed(), page, count=1)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
