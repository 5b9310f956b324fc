"""The `evaluator-host` command: its subcommands and the options before them."""

import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from evaluator_host import __version__
from evaluator_host.cli.command import cli_state
from evaluator_host.cli.console import out, print_json
from evaluator_host.cli.options import JsonOption
from evaluator_host.dialects.base import EntryPoint
from evaluator_host.dialects.table import all_dialects

# Module of each command, in the order of `--help`. Only the requested one is imported: importing all takes a second.
_COMMANDS: Final = {
    "serve": "cli.serve",
    "run": "cli.run",
    "check": "cli.check",
    "test": "cli.develop",
    "watch": "cli.develop",
    "login": "cli.develop",
    "merge": "cli.merge",
    "migrate": "migration.host.command",
    "import": "migration.host.import_command",
    "doctor": "cli.doctor",
    "selftest": "selftest.command",
    "mcp": "integrations.command",
    "setup": "cli.doctor",
    "install-service": "cli.doctor",
    "audit": "cli.keys",
    "usage": "cli.keys",
    "backup": "cli.backup",
    "restore": "cli.backup",
}
# Where the command is no name for a function.
_FUNCTIONS: Final = {"import": "import_", "test": "run_cases", "install-service": "install_service"}
_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True}  # to `run`
# Commands that call the host of `login`.
_CALLING: Final = ("evaluators", "datasets", "jobs", "schedules", "alerts", "labels", "secrets", "models")
_GROUPS: Final = {
    "images": "cli.doctor",
    "keys": "cli.keys",
    "packages": "cli.packages",
    "evaluators": "cli.evaluators",
    "datasets": "cli.datasets",
    "jobs": "cli.jobs",
    "schedules": "cli.schedules",
    "alerts": "cli.schedules",
    "labels": "cli.labels",
    "secrets": "cli.secrets",
    "models": "cli.models",
    "wires": "dialects.wires.host.command",
}


_WHOLE_SENTENCE: Final = 300  # characters


class _Sections(TyperGroup):
    """A group whose help lists its commands in sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section; those of no section belong to the last one."""
        sections = {title: list(names) for title, names in help_texts()["sections"].items()}
        known = {name for names in sections.values() for name in names}
        sections[list(sections)[-1]] += [name for name in self.list_commands(ctx) if name not in known]
        for title, names in sections.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            if rows := [(name, one.get_short_help_str(_WHOLE_SENTENCE)) for name, one in found if one is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


@cache
def help_texts() -> dict[str, Any]:
    """Return the sections and the examples of the help."""
    return tomllib.loads(Path(__file__).with_name("help.toml").read_text("utf-8"))


def _examples(command: str) -> str | None:
    found = help_texts()["examples"].get(command)
    return found and "\n".join(("\b", "Examples:", *(f"  evaluator-host {one}" for one in found)))


def _with_examples(group: str, commands: typer.Typer) -> typer.Typer:
    for one in commands.registered_commands:
        name = one.name or str(getattr(one.callback, "__name__", "")).replace("_", "-")
        one.epilog = one.epilog or _examples(f"{group} {name}")
    return commands


def command_line(name: str | None = None) -> typer.Typer:
    """Return the command line with all subcommands, or with only the subcommand of that name."""
    app = typer.Typer(
        cls=_Sections,
        name="evaluator-host",
        help="Runs Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before)
    app.command(epilog=_examples("version"))(version)
    for command, module in _COMMANDS.items():
        if name in (command, None):
            extra: dict[str, Any] = {"context_settings": _PASSED_ON} if command == "watch" else {}
            app.command(command, epilog=_examples(command), **extra)(
                getattr(_module(module), _FUNCTIONS.get(command, command))
            )
    for group, module in _GROUPS.items():
        if name in (group, None):
            found = _module(module)
            commands = found.app if found.app.info.name == group else getattr(found, group)
            app.add_typer(_with_examples(group, commands), name=group)
    for group, entry in _dialect_groups().items():
        if name in (group, None):
            app.add_typer(entry.load(), name=group)
    return app


def _dialect_groups() -> dict[str, EntryPoint[Any]]:
    """Return the commands that dialects bring, each group under the name of its contract."""
    return {dialect.contract.value: dialect.commands for dialect in all_dialects() if dialect.commands is not None}


def _module(name: str) -> Any:
    return import_module(f"evaluator_host.{name}")


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    if asked:
        version()
        raise typer.Exit


def _before(
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="EVALUATOR_HOST_DEBUG", help="Show a traceback on errors.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    cli_state.debug = debug


def version(*, as_json: JsonOption = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        out.print(f"evaluator-host {__version__}")


def requested_commands() -> typer.Typer:
    """Return the command line with the one subcommand that this process was started with, or with all."""
    words = ("version" if word == "--version" else word for word in sys.argv[1:])
    asked = next((word for word in words if not word.startswith("-")), None)
    if asked in _CALLING:
        _module("cli.develop").use_login()
    return command_line(asked if asked in ("version", *_COMMANDS, *_GROUPS, *_dialect_groups()) else None)
