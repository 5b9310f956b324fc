"""`check`: load an evaluator without running rows, run its cases, and print a report."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.files import writing
from evaluator_host.platform.evaluators.cases import check_cases
from evaluator_host.platform.evaluators.evaluation_service import (
    evaluate_in_order,
    open_evaluation_service,
    prepare,
    report_with_declared,
)
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator, case_files, read_cases, read_evaluator
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, facts, plain, print_found
from evaluator_host.platform.terminal.logins import tell_here
from evaluator_host.platform.terminal.summary import error_text, fix_text
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import Contract, Policy
from evaluator_host.types.outcome import EvaluatorClass, MissingImport


def check(
    file: options.FileArgument,
    *,
    language: options.LanguageOption = None,
    contract: options.ContractOption = Contract.AUTO,
    entry: options.EntryOption = None,
    config: options.ConfigOption = None,
    package: options.PackageOption = None,
    policy: options.PolicyOption = Policy.NONE,
    data_file: options.FileOption = None,
    data_folder: options.FilesOption = None,
    python: options.PythonOption = None,
    memory_mb: options.MemoryOption = None,
    model: options.ModelOption = None,
    network: options.NetworkOption = None,
    secret: options.CodeSecretOption = None,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Restore lost indentation in FILE, if there is only one way to do it.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Check syntax, contract, parameters, imports, and the cases next to FILE (NAME.cases.jsonl).

    Exit 1 on problems.
    """
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    read = partial(
        read_evaluator,
        file,
        language,
        host=settings,
        contract=contract,
        packages=package,
        policy=policy,
        extra=data_file or (),
        folders=data_folder or (),
        python=python,
        entry=entry,
        config=config,
        memory_mb=memory_mb,
        models=model,
        network=network,
        secrets=secret,
    )
    if fix:
        alone = read(alone=True)
        _write_fix(file, run_async(lambda: _check(file, alone, settings, url, shown=not as_json)))
    given = read()
    if url is None and not as_json:
        tell_here()
    report = run_async(lambda: _check(file, given, settings, url, shown=not as_json))
    print_found(report, _table, as_json=as_json)
    raise typer.Exit(0 if report.ok else 1)


def _write_fix(file: Path, report: CheckReport) -> None:
    """Restore the lost indentation of a file if there is only one possibility. Otherwise leave the file unchanged."""
    fix = next((problem.fix for problem in report.problems if problem.fix is not None), None)
    if fix is None or fix.code is None:
        lost = any(problem.code == "syntax_error" for problem in report.problems)
        why = (
            "its indentation can be restored in several ways, or not at all; correct it by hand"
            if lost
            else "no fault was found"
        )
        err.print(plain(f"{file} was not changed: {why}"))
        return
    with writing(file):
        file.write_bytes(fix.code.encode())
    err.print(plain(f"restored the indentation of {file}"))


async def _check(
    file: Path, given: LoadedEvaluator, settings: Settings, url: str | None, *, shown: bool
) -> CheckReport:
    async with open_evaluation_service(settings, url) as target:
        await prepare(target, given, shown=shown)
        cases = [case for path in case_files(file) for case in read_cases(path, settings)]
        run = partial(evaluate_in_order, target, given.evaluator)
        report = report_with_declared(await target.check(given.evaluator), given)
        return await check_cases(run, report, cases)


def _table(report: CheckReport) -> Text:
    contract = f"{report.contract} ({report.contract_source})" if report.contract else None
    return facts(
        (
            ("ok", "yes" if report.ok else "no"),
            ("contract", contract),
            ("because", report.reason),
            ("parameters", ", ".join(report.parameters)),
            ("evaluators", "\n".join(_class(found) for found in report.classes)),
            ("problems", "\n".join(error_text(problem) for problem in report.problems)),
            ("fix", "\n".join(fix_text(problem.fix) for problem in report.problems if problem.fix is not None)),
            ("missing imports", "\n".join(map(_missing, _untold_imports(report)))),
            ("not loaded", ", ".join(report.not_loaded)),
            ("cases", "\n".join(f"{one.case}: {one.problem}" for one in report.failing_cases)),
            ("notes", "\n".join(f"{note.code}: {in_options(note.text)}" for note in report.notes)),
            ("runtime", report.environment.runtime),
            ("stdout", report.logs.stdout),
            ("stderr", report.logs.stderr),
        ),
    )


def _class(found: EvaluatorClass) -> str:
    """Return the name and the id of an evaluator class, or what is wrong with the class."""
    told = f"{found.name} ({found.id})" if found.id else found.name
    return told if found.error is None else f"{told}: {found.error.message}"


def _untold_imports(report: CheckReport) -> list[MissingImport]:
    """Return the missing imports, without those for which the hint of a problem already names a pin."""
    hints = " ".join(problem.hint or "" for problem in report.problems)
    return [one for one in report.missing_imports if one.pin is None or one.pin not in hints]


def _missing(missing: MissingImport) -> str:
    place = f"line {missing.line}" if missing.file is None else f"{missing.file}, line {missing.line}"
    pin = f"; probably pin {missing.pin}" if missing.pin else ""
    if missing.pin and missing.path:
        pin = f"; if you mean the package of that name, pin {missing.pin}"
    path = f"; the project has no {missing.path}" if missing.path else ""
    return f"{missing.module} ({place}){path}{pin}"
