"""The help of the command line has sections, and examples that each command accepts."""

import shlex
from typing import Any

import pytest
import typer

from evaluator_host.cli.main import command_line, help_texts


@pytest.fixture(scope="module")
def commands() -> Any:
    return typer.main.get_command(command_line())


def paths(commands: Any) -> list[str]:
    groups = {name: getattr(one, "commands", None) for name, one in commands.commands.items()}
    return [f"{name} {sub}" for name, subs in groups.items() for sub in subs or ()] + [
        name for name, subs in groups.items() if subs is None
    ]


def test_every_command_is_in_one_section_and_has_examples(commands: Any) -> None:
    listed = [name for names in help_texts()["sections"].values() for name in names]
    assert sorted(listed) == sorted(commands.commands)
    assert sorted(help_texts()["examples"]) == sorted(paths(commands))


def test_each_summary_is_the_first_sentence_of_its_command(commands: Any) -> None:
    found = {name: one.get_short_help_str(300) for name, one in commands.commands.items()}
    assert help_texts()["summaries"] == found


@pytest.mark.slow
def test_every_example_is_taken_by_its_command(commands: Any) -> None:
    for command, examples in help_texts()["examples"].items():
        for example in examples:
            assert example.startswith(command)
            words = shlex.split(example.partition(" < ")[0].partition(" > ")[0])
            found, parent = commands, typer.Context(commands, info_name="evaluator-host")
            for name in command.split():
                found, words = found.commands[name], words[1:]
            found.make_context(command, words, parent=parent).close()


def test_help_shows_sections_and_examples(commands: Any) -> None:
    text = commands.get_help(typer.Context(commands, info_name="evaluator-host"))
    assert text.index("Write and score evaluators:") < text.index("Use a host:") < text.index("  uipath")
    assert "..." not in text.partition("Write and score")[2]
    rows = commands.commands["jobs"].commands["rows"]
    assert "Examples:\n    evaluator-host jobs rows last" in rows.get_help(typer.Context(rows, info_name="rows"))


def test_groups_have_whole_sentences_on_80_columns(commands: Any) -> None:
    for name, group in commands.commands.items():
        if getattr(group, "commands", None):
            context = typer.Context(group, info_name=name, terminal_width=80)
            assert "..." not in group.get_help(context).partition("Commands:")[2], name
