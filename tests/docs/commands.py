"""Makes the sections of docs/cli.md from the commands themselves: `python -m tests.docs.commands` writes them."""

import re
from functools import cache
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


@cache
def leaf_commands() -> dict[str, Any]:
    """Return every command that can be run, by name; groups of commands are left out."""
    found = {}
    for title, command in typer.main.get_command(command_line()).commands.items():  # type: ignore[attr-defined]
        for below, inner in getattr(command, "commands", {"": command}).items():
            found[f"{title} {below}".strip()] = inner
    return found


def sections() -> str:
    """Return a section for each command and each group of commands. Options are left out, because `--help` shows them."""
    alone = [
        f"### `{called(title, one)}`\n\n{told(one)}\n" for title, one in leaf_commands().items() if " " not in title
    ]
    groups = {title.partition(" ")[0] for title in leaf_commands() if " " in title}
    return "\n".join([*alone, *(_group(name) for name in sorted(groups))])


def _group(name: str) -> str:
    below = {title: one for title, one in leaf_commands().items() if title.startswith(f"{name} ")}
    return f"### `{name}`\n\n" + "".join(f"- `{called(title, one)}`: {told(one)}\n" for title, one in below.items())


def called(title: str, command: Any) -> str:
    """Return a command's usage line, without options."""
    pieces = command.collect_usage_pieces(command.make_context(title, [], resilient_parsing=True))
    arguments = " ".join(ARGUMENTS.get(piece, piece.removesuffix("...").strip("{}")) for piece in pieces[1:])
    return f"{title} {arguments}".strip()


def told(command: Any) -> str:
    """Return the first clause of a command's help text."""
    return re.split(r"[.:;] ", " ".join(command.help.split()))[0].rstrip(".") + "."


def written(page: str) -> str:
    """Return the page with up-to-date sections at its end."""
    return page.partition(START)[0] + f"{START}\n{sections()}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
