"""The `uipath` commands: create, register and run evaluators in UiPath's project layout."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.packages.own_files import explain_missing
from evaluator_host.platform.evaluators.evaluation_service import open_evaluation_service, prepare
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator, read_evaluator
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_json
from evaluator_host.types.errors import InvalidRequest, NameTaken
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import Contract
from evaluator_host.vendors.uipath.cli.eval import FolderOption, ProjectOption, eval_
from evaluator_host.vendors.uipath.modules import project_of
from evaluator_host.vendors.uipath.project import find_code, find_layout, write_file
from evaluator_host.vendors.uipath.registering import Registered, left_out, usable_classes
from evaluator_host.vendors.uipath.registering import register as write_files
from evaluator_host.vendors.uipath.template import evaluator_code, file_name

_KIND: Final = "evaluator"

app = typer.Typer(name="uipath", no_args_is_help=True)


@app.command()
def add(
    words: Annotated[
        list[str], typer.Argument(metavar="[evaluator] NAME", help="Name of the new evaluator: my-custom-evaluator")
    ],
    *,
    project: ProjectOption = Path(),
    folder: FolderOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write the file of a new evaluator: a working example for you to change."""
    name = _evaluator_word(words, "add", "NAME")
    code, file = evaluator_code(name), file_name(name)
    layout = find_layout(project, folder=folder)
    path = layout.custom / file
    if path.exists():
        raise NameTaken(f"{layout.shown(path)} already exists; choose another name, or remove that file")
    write_file(layout, path, code)
    if as_json:
        print_json({"file": str(path)})
        return
    out.print(plain(f"made {layout.shown(path)}"))
    err.print(plain(f"next: change the file, then run evaluator-host uipath register evaluator {file}"))


@app.command()
def register(
    words: Annotated[
        list[str], typer.Argument(metavar="[evaluator] FILE", help="File in the custom folder: my_custom_evaluator.py")
    ],
    *,
    project: ProjectOption = Path(),
    folder: FolderOption = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Overwrite the settings in the file with those in the code.")
    ] = False,
    package: options.PackageOption = None,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write the JSON files of every evaluator in a Python file. The file is loaded only in a sandbox."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    layout = find_layout(project, folder=folder)
    code = find_code(layout, _evaluator_word(words, "register", "FILE"))
    given = read_evaluator(
        code,
        None,
        host=settings,
        project=project_of(layout),
        contract=Contract("uipath"),
        packages=package,
    )
    report = run_async(lambda: _check(given, settings, url, shown=not as_json))
    report = replace(report, problems=tuple(explain_missing(problem, code, layout.root) for problem in report.problems))
    made = write_files(layout, code, usable_classes(report, code), reset=reset)
    if as_json:
        print_json([{**_facts(one), "kept": one.kept} for one in made])
        return
    for note in left_out(report):
        err.print(plain(note))
    for one in made:
        out.print(plain(f"{one.id}: {layout.shown(one.file)}, {layout.shown(one.types)}"))
        for name in one.kept:
            err.print(plain(f"{one.id}: {name} in the file differs from the code, and was kept; --reset overwrites it"))


def _evaluator_word(words: Sequence[str], command: str, what: str) -> str:
    """Return the name or file that a command was given.

    As in UiPath's commands, the word `evaluator` may come before it.

    Raises:
      InvalidRequest: there is not exactly one name or file, or a different word comes before it.
    """
    if len(words) == 1 and words[0] != _KIND:
        return words[0]
    if len(words) == 2 and words[0] == _KIND:
        return words[1]
    given = " ".join((command, *words))
    meant = f"uipath {command} {_KIND} {_last(words) or what}"
    raise InvalidRequest(f"uipath {given} is not a command; did you mean: {meant}")


def _last(words: Sequence[str]) -> str | None:
    return words[-1] if len(words) > 1 else None


async def _check(given: LoadedEvaluator, settings: Settings, url: str | None, *, shown: bool) -> CheckReport:
    async with open_evaluation_service(settings, url) as target:
        await prepare(target, given, shown=shown)
        return await target.check(given.evaluator)


def _facts(one: Registered) -> dict[str, str]:
    return {"class": one.name, "id": one.id, "file": str(one.file), "types": str(one.types)}


app.command(name="eval")(eval_)
