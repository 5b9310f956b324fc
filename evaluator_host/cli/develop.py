"""`test` runs the cases next to evaluators, and compares the results. `watch` repeats a run when a file is saved."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree as ET

import typer

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.imports import SUFFIXES
from evaluator_host.engine.system.files import replace_file
from evaluator_host.platform.evaluators.cases import case_row, read_expect, unmet
from evaluator_host.platform.evaluators.evaluation_service import evaluate_in_order, open_evaluation_service, prepare
from evaluator_host.platform.evaluators.evaluator_files import EXPECT, case_files, read_cases, read_evaluator
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_json, printable
from evaluator_host.types.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a test case. `problem` says how the result differs from the expected result, or is None."""

    evaluator: str
    case: str
    problem: str | None


def run_cases(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files of evaluators, or folders that contain them.")
    ],
    *,
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit XML report to this file.")] = None,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Run the rows in NAME.cases.jsonl (.json .csv .xlsx) beside each evaluator, and compare each result with `expect`.

    A row has `expect`: {"score": 1, "tolerance": 0.05}, or a string: 1 ± 0.05, >= 0.5, passed, fails, label good.
    """
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    found = [pair for path in paths for pair in _pairs(path)]
    if not found:
        raise InvalidRequest(
            "there are no test cases: put a file NAME.cases.jsonl beside NAME.py, with a row and its `expect` on "
            "each line"
        )
    outcomes = run_async(lambda: _tested(found, settings, url))
    bad = [one for one in outcomes if one.problem is not None]
    if junit is not None:
        replace_file(junit, _junit(outcomes))
    if as_json:
        print_json(outcomes)
    else:
        for one in bad:
            out.print(plain(f"{one.evaluator}: {one.case}: {one.problem}"))
        out.print(f"{len(outcomes) - len(bad)} of {len(outcomes)} cases passed")
    raise typer.Exit(1 if bad else 0)


def _pairs(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each evaluator at a path, together with the file of its cases."""
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES)
    if not path.exists():
        raise InvalidRequest(f"there is no file or folder {path}; check its spelling")
    for file in files:
        for cases in case_files(file):
            yield file, cases


async def _tested(found: list[tuple[Path, Path]], settings: Settings, url: str | None) -> list[CaseOutcome]:
    outcomes: list[CaseOutcome] = []
    async with open_evaluation_service(settings, url) as target:
        for file, path in found:
            given = read_evaluator(file, None, host=settings)
            cases = read_cases(path, settings)
            await prepare(target, given, shown=False)
            results = await evaluate_in_order(target, given.evaluator, [case_row(case) for case in cases])
            for case, result in zip(cases, results, strict=True):
                outcomes.append(CaseOutcome(str(file), case["case"], unmet(read_expect(case[EXPECT]), result)))
    return outcomes


def _junit(outcomes: list[CaseOutcome]) -> bytes:
    failures = sum(one.problem is not None for one in outcomes)
    counts = {"name": "evaluators", "tests": str(len(outcomes)), "failures": str(failures)}
    suite = ET.Element("testsuite", counts)
    for one in outcomes:
        case = ET.SubElement(suite, "testcase", {"classname": printable(one.evaluator), "name": printable(one.case)})
        if one.problem is not None:
            ET.SubElement(case, "failure", {"message": printable(one.problem)})
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True))


def watch(
    context: typer.Context,
    file: options.FileArgument,
    data: Annotated[Path, typer.Option(help="File of rows: .jsonl .ndjson .csv .tsv .json .parquet .xlsx")],
) -> None:
    """Run an evaluator over rows now, and again whenever a file beside it is saved. Takes the options of `run`."""
    from watchfiles import watch as changes  # noqa: PLC0415 - only this command needs it

    options.require_file(file)
    command = [sys.executable, "-m", "evaluator_host", "run", str(file), "--data", str(data), *context.args]
    folders = {file.resolve().parent, data.resolve().parent}
    subprocess.run(command, check=False)  # noqa: S603 - the user gave these arguments
    try:
        for changed in changes(*folders, watch_filter=lambda _, path: path.endswith((*SUFFIXES, data.suffix))):
            names = ", ".join(sorted({Path(path).name for _, path in changed}))
            err.print(plain(f"\n{names} changed"))
            subprocess.run(command, check=False)  # noqa: S603 - as above
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
