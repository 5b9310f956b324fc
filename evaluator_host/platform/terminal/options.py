"""Options that several commands share."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from evaluator_host.engine.config.settings import SandboxChoice
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Contract, Language, Policy, Replay
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import InvalidJson, decode_given

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="File with the evaluator: .py .js .mjs .cjs .ts .mts")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Delete the object even if something uses it.")]
ByOption = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Show mean, pass rate and counts for each value of this column.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
LanguageOption = Annotated[
    Language | None,
    typer.Option(help="Language of the code. Default: taken from the file's suffix.", show_default=False),
]
ContractOption = Annotated[Contract, typer.Option(help="How the code is called; auto infers this from the code.")]
EntryOption = Annotated[
    str | None, typer.Option(help="Name of the function or class to call, if the code has several; * for all of them.")
]
IntegersOption = Annotated[
    Literal["bigint", "text"] | None,
    typer.Option(
        help="JavaScript, TypeScript: how to pass integers beyond 2^53, which are rounded if they stay numbers."
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        help="Arguments of the evaluator's class, or its configuration: a JSON object, or a file that contains one."
    ),
]
PackageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--package",
        "--packages",
        metavar="PIN",
        help="An exact pin: numpy==2.1.0, lodash@4.17.21; or auto, to let the host choose pins for the imports. "
        "Repeatable.",
    ),
]
FileOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="PATH",
        help="A file, or a folder of data, that the code reads. Repeatable. Imported files are sent anyway.",
    ),
]
FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--files",
        metavar="DIR",
        help="A folder whose files are sent too. If it contains FILE, paths start at this folder. Repeatable.",
    ),
]
PythonOption = Annotated[str | None, typer.Option(help="Minor version of Python to run on: 3.13.")]
PolicyOption = Annotated[Policy, typer.Option(help="restricted: run under RestrictedPython (Python only).")]
TimeoutOption = Annotated[float | None, typer.Option(help="Time limit for one row, in seconds.", show_default="10")]
MemoryOption = Annotated[int | None, typer.Option(help="Memory limit of a sandbox, in MB.", show_default="256")]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="A registered model that the code may call: NAME, or ALIAS=NAME if the code calls it ALIAS. Repeatable.",
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help="Format of the data. Default: taken from the file's suffix.", show_default=False),
]
NetworkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--network", metavar="HOST:PORT", help="A host that the code may reach: api.example.com:443. Repeatable."
    ),
]
CodeSecretOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="VARIABLE=SECRET",
        help="An environment variable in which the code gets a secret: API_TOKEN=crm. Repeatable.",
    ),
]
ReplayOption = Annotated[
    Replay, typer.Option(help="How to use recorded answers of models; require uses only recorded ones.")
]
RequestsOption = Annotated[
    int | None,
    typer.Option(
        "--budget-requests", min=0, help="Maximum number of requests to models for one row.", show_default="the host's"
    ),
]
TokensOption = Annotated[
    int | None, typer.Option("--budget-tokens", min=0, help="Maximum number of tokens that one row may use.")
]
CostOption = Annotated[float | None, typer.Option("--budget-cost", min=0, help="Maximum cost of models for one row.")]
UrlOption = Annotated[
    str | None,
    typer.Option(envvar="EVALUATOR_HOST_URL", help="Use the running host at this URL instead of this process."),
]
AllWorkspacesOption = Annotated[
    bool,
    typer.Option(
        "--all-workspaces", help="Include every workspace: reads the database on this machine, and needs no key."
    ),
]
DataDirOption = Annotated[
    Path | None, typer.Option(help="Directory for data and for tools that the host has prepared.", show_default=False)
]
SandboxOption = Annotated[
    SandboxChoice | None, typer.Option(help="Kind of sandbox: auto, bubblewrap, docker or none.", show_default="auto")
]


def require_file(file: Path) -> None:
    """Check that a file exists.

    Raises:
      InvalidRequest: the file does not exist.
    """
    if not file.is_file():
        raise InvalidRequest(f"cannot read {file}: there is no such file")


def json_option(option: str, text: str) -> dict[str, Any]:
    """Parse the value of a command-line option (`--inputs`) as a JSON object.

    Raises:
      InvalidRequest: the value is not a JSON object; the problem names the option.
    """
    try:
        value = decode_given(text.encode())
    except InvalidJson as error:
        raise InvalidRequest("an option is invalid", problems=(Problem(option, str(error)),)) from error
    if not isinstance(value, dict):
        raise InvalidRequest("an option is invalid", problems=(Problem(option, "it is not a JSON object"),))
    return value


def read_duration(text: str, option: str) -> timedelta:
    """Parse a duration such as `90d`, `12h` or `2w`.

    Raises:
      InvalidRequest: the string is not a duration, or the duration is over a hundred years.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    found = timedelta(**{_UNITS[match.group(2)]: int(match.group(1))}) if match else None
    if found is None or found.days > 36_500:
        raise InvalidRequest(f"{option} {text!r} is not a duration; write a number and s, m, h, d or w: 90d, 12h, 2w")
    return found
