"""`check`: load an evaluator in a sandbox without running a row, and report problems."""

import typer
from rich.text import Text

from evaluator_host.cli import options
from evaluator_host.cli.command import load_settings, run_async
from evaluator_host.cli.console import facts, out, print_json
from evaluator_host.cli.evaluation_service import open_evaluation_service, prepare
from evaluator_host.cli.summary import error_text
from evaluator_host.config.settings import Settings
from evaluator_host.model.evaluator import Contract, Policy
from evaluator_host.model.outcome import EvaluatorClass, MissingImport
from evaluator_host.schemas.evaluation import CheckReport


def check(
    file: options.FileArgument,
    *,
    language: options.LanguageOption = None,
    contract: options.ContractOption = Contract.AUTO,
    entry: options.EntryOption = None,
    config: options.ConfigOption = None,
    package: options.PackageOption = None,
    policy: options.PolicyOption = Policy.NONE,
    python: options.PythonOption = None,
    memory_mb: options.MemoryOption = None,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Check an evaluator without running a row: syntax, contract, parameters, imports. Exit 1 on problems."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    given = options.read_evaluator(
        file,
        language,
        host=settings,
        contract=contract,
        packages=package,
        policy=policy,
        python=python,
        settings={"entry": entry, "config": config},
        limits={"memory_mb": memory_mb},
    )
    report = run_async(lambda: _check(given, settings, url, shown=not as_json))
    if as_json:
        print_json(report)
    else:
        out.print(_table(report))
    raise typer.Exit(0 if report.ok else 1)


async def _check(given: options.LoadedEvaluator, settings: Settings, url: str | None, *, shown: bool) -> CheckReport:
    async with open_evaluation_service(settings, url) as target:
        await prepare(target, given, shown=shown)
        return await target.check(given.evaluator)


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
            ("missing imports", "\n".join(_missing(missing) for missing in report.missing_imports)),
            ("notes", "\n".join(f"{note.code}: {note.message}" for note in report.notes)),
            ("runtime", report.environment.runtime),
            ("stdout", report.logs.stdout),
            ("stderr", report.logs.stderr),
        ),
    )


def _class(found: EvaluatorClass) -> str:
    """Return the name and the id of an evaluator class, or its fault."""
    told = f"{found.name} ({found.id})" if found.id else found.name
    return told if found.error is None else f"{told}: {found.error.message}"


def _missing(missing: MissingImport) -> str:
    pin = f"; it probably needs {missing.pin}" if missing.pin else ""
    return f"{missing.module} (line {missing.line}){pin}"
