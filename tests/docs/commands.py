"""The sections of docs/cli.md, made of the commands themselves: `python -m tests.docs.commands` writes them."""

from typing import Any, Final

import typer.main

from evaluator_host.cli.main import command_line
from tests.docs.blocks import ROOT

PAGE: Final = ROOT / "docs" / "cli.md"
START: Final = "## All commands\n"
ARGUMENTS: Final = {
    "[[NAME]...]...": "[NAME]...",
    "{url}": "URL",
    "{file}": "FILE",
    "{name}": "NAME",
    "[text]": "[TEXT]",
}


def leaf_commands() -> dict[str, Any]:
    """Return every command that does something, by its name."""
    found = {}
    for title, command in typer.main.get_command(command_line()).commands.items():  # type: ignore[attr-defined]
        for below, inner in getattr(command, "commands", {"": command}).items():
            found[f"{title} {below}".strip()] = inner
    return found


def sections() -> str:
    """Return a section for each command: how it is called, and what it does; `--help` has its options."""
    return "\n".join(_section(title, command) for title, command in leaf_commands().items())


def _section(title: str, command: Any) -> str:
    pieces = command.collect_usage_pieces(command.make_context(title, [], resilient_parsing=True))
    arguments = " ".join(ARGUMENTS.get(piece, piece.removesuffix("...").strip("{}")) for piece in pieces[1:])
    text = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
    return f"### `{f'{title} {arguments}'.strip()}`\n\n{text}\n"


def written(page: str) -> str:
    """Return the page with these sections at its end."""
    return page.partition(START)[0] + f"{START}\n{sections()}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
