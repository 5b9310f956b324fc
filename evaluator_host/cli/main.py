"""The `evaluator-host` command: its subcommands and the options before them."""

import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer

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
    "check": "cli.run",
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


def command_line(name: str | None = None) -> typer.Typer:
    """Return the command line with all subcommands, or with only the subcommand of that name."""
    app = typer.Typer(
        name="evaluator-host",
        help="Runs Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before)
    app.command()(version)
    for command, module in _COMMANDS.items():
        if name in (command, None):
            extra: dict[str, Any] = {"context_settings": _PASSED_ON} if command == "watch" else {}
            app.command(command, **extra)(getattr(_module(module), _FUNCTIONS.get(command, command)))
    for group, module in _GROUPS.items():
        if name in (group, None):
            found = _module(module)
            app.add_typer(found.app if found.app.info.name == group else getattr(found, group), name=group)
    for group, commands in _dialect_groups().items():
        if name in (group, None):
            app.add_typer(commands.load(), name=group)
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
