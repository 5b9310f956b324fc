"""The `evaluator-host` command: its options and its subcommands. Each subcommand is imported when it is used.

The help and the shell completion read the list of commands from the files `help.toml`, here and in the folders of
resources, and import no command.
"""

import gc
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from evaluator_host import __version__
from evaluator_host.platform.terminal.command import cli_state
from evaluator_host.platform.terminal.console import print_found
from evaluator_host.types.names import nearest_name

# The module of each command, followed by the command's function if that has another name than the module.
_COMMANDS: Final = {
    "version": "cli.main",
    "serve": "cli.serve",
    "run": "cli.run",
    "check": "cli.check",
    "test": "cli.develop:run_cases",
    "watch": "cli.develop",
    "login": "platform.terminal.remote_host",
    "merge": "cli.merge",
    "migrate": "migrate.host.command",
    "import": "migrate.host.import_command:import_",
    "doctor": "cli.doctor",
    "selftest": "selftest.command",
    "mcp": "integrations.command",
    "setup": "cli.doctor",
    "install-service": "cli.doctor:install_service",
    "audit": "platform.keys.commands",
    "backup": "cli.backup",
    "restore": "cli.backup",
}
# Aliases: other words that people type in place of a command's name.
_ALIASES: Final = {"evaluate": ("run",), "eval": ("run",), "environments": ("packages",)}
# Aliases in a group of commands. Each means the first of the commands on its right that exists in the group.
_VERBS: Final = {
    **dict.fromkeys(("remove", "rm"), ("delete", "revoke")),
    **dict.fromkeys(("add", "new", "create"), ("create", "upload", "build", "set")),
    **dict.fromkeys(("set", "change", "edit"), ("update", "set", "edit")),
    **dict.fromkeys(("run", "start"), ("run", "create")),
    "delete": ("revoke",),
    "get": ("show",),
    "stop": ("cancel",),
    "export": ("download",),
}
_ELSEWHERE: Final = {"jobs schedule": ("schedules", "create")}
# click's settings for commands that pass their arguments on to `run`
_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True}
_GROUPS: Final = {"images": "evaluator_host.cli.doctor"}  # command groups that belong to no resource


class _Commands(Mapping[str, Any]):
    """A mapping from names to commands. A command is imported and built when it is looked up."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter((*_COMMANDS, *_groups()))

    def __len__(self) -> int:
        return sum(1 for _ in self)  # not `len([*self])`, which would call this method again

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _built(name)
        return self._built[name]


class _Completion(NamedTuple):
    """A word that the shell offers as a completion, as typer formats it."""

    value: str
    help: str
    type: str = "plain"


class _Group(TyperGroup):
    """A group of commands that also accepts aliases, and suggests the nearest name for a misspelt name."""

    aliases: Mapping[str, tuple[str, ...]] = _VERBS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name or alias, or None if there is no such command."""
        group, name = _ELSEWHERE.get(f"{self.name} {cmd_name}", ("", ""))
        if group in _groups():
            return _built(group).commands[name]
        meant = () if cmd_name in self.commands else self.aliases.get(cmd_name, ())
        return super().get_command(ctx, next((one for one in meant if one in self.commands), cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, as typer does. If there is none, suggest the nearest name."""
        word = args[0] if args else ""
        if args and self.get_command(ctx, word) is None and not word.startswith("-"):
            known = [*self.commands, *(one for one in self.aliases if self.get_command(ctx, one) is not None)]
            meant = nearest_name(word, known)
            ctx.fail(f"No such command {word!r}." + (f" Did you mean {meant!r}?" if meant else ""))
        return super().resolve_command(ctx, args)


class _CommandLine(_Group):
    """A group of commands. Its help lists the commands in sections, without importing them."""

    aliases = _ALIASES

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": _Commands()})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        return [*self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        summaries = help_texts()["summaries"]
        for title, names in help_texts()["sections"].items():
            with formatter.section(title):
                formatter.write_dl([(name, summaries[name]) for name in names])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands and the options that begin with this string."""
        found = [
            _Completion(name, said) for name, said in help_texts()["summaries"].items() if name.startswith(incomplete)
        ]
        return [*found, *super(TyperGroup, self).shell_complete(ctx, incomplete)]


@cache
def help_texts() -> dict[str, Any]:
    """Return the help texts of this folder and of the resources: sections, summaries and examples of commands."""
    found = tomllib.loads(Path(__file__).with_name("help.toml").read_text("utf-8"))
    for name, texts in _resources().items():
        found["sections"][texts["section"]].append(name)
        found["summaries"][name] = texts["summary"]
        found["examples"] |= {f"{name} {command}".rstrip(): examples for command, examples in texts["examples"].items()}
    return found


@cache
def _resources() -> dict[str, dict[str, Any]]:
    """Return the help texts of the resources that have commands, from the `help.toml` in their folders."""
    from evaluator_host.platform.folders import resource_folders  # noqa: PLC0415 - reads the folders of all packages

    files = {one.name: one.path / "help.toml" for one in resource_folders()}
    return {name: tomllib.loads(file.read_text("utf-8")) for name, file in files.items() if file.is_file()}


@cache
def _groups() -> dict[str, str]:
    """Return a dict from the name of each command group to its module."""
    from evaluator_host.platform.folders import resource_folders  # noqa: PLC0415 - as above

    found = {one.name: one.package for one in resource_folders() if one.name in _resources()}
    return _GROUPS | {name: f"{package}.commands" for name, package in found.items()}


def _examples(command: str) -> str | None:
    found = help_texts()["examples"].get(command)
    return found and "\n".join(("\b", "Examples:", *(f"  evaluator-host {one}" for one in found)))


def command_line() -> typer.Typer:
    """Return the command line with all subcommands."""
    app = typer.Typer(
        cls=_CommandLine,
        name="evaluator-host",
        help="Runs Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before)
    return app


def _built(name: str) -> Any:
    """Import a command or a group of commands, and return it in the form that typer runs.

    Raises:
      KeyError: there is no such command.
    """
    holder = typer.Typer(rich_markup_mode=None)
    if name in _COMMANDS:
        module, _, function = _COMMANDS[name].partition(":")
        settings = _PASSED_ON if name == "watch" else None
        holder.command(name, epilog=_examples(name), context_settings=settings)(
            getattr(_module(module), function or name)
        )
    else:
        found, said = import_module(_groups()[name]), help_texts()["summaries"][name]
        app = getattr(found, "app", None)
        group = app if app is not None and app.info.name == name else getattr(found, name)
        if isinstance(group, typer.Typer):
            holder.add_typer(_with_examples(name, group), name=name, help=said, cls=_Group)
        else:
            holder.command(name, epilog=_examples(name))(group)
    return get_group(holder).commands[name]


def _with_examples(group: str, commands: typer.Typer) -> typer.Typer:
    for one in commands.registered_commands:
        name = one.name or str(getattr(one.callback, "__name__", "")).replace("_", "-")
        one.epilog = one.epilog or _examples(f"{group} {name}")
        # without this, click would show only the beginning of the first paragraph
        one.short_help = (one.help or getdoc(one.callback) or "").partition("\n\n")[0]
    return commands


def _module(name: str) -> Any:
    return import_module(f"evaluator_host.{name}")


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    if asked:
        version()
        raise typer.Exit


def _before(
    context: typer.Context,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="EVALUATOR_HOST_DEBUG", help="Show a traceback on errors.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    # all modules of the command are imported by now and are never freed, so the garbage collector can skip them
    gc.freeze()
    gc.enable()
    cli_state.debug = debug
    if _resources().get(context.invoked_subcommand or "", {}).get("calls_host"):
        _module("platform.terminal.logins").use_login()


def version(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """Print the version."""
    print_found({"version": __version__}, lambda found: f"evaluator-host {found['version']}", as_json=as_json)
