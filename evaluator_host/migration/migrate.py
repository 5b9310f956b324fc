"""The verb: a legacy evaluator in, its code in the new signature out, with a proof."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from evaluator_host.migration.draft import Rewritten, Wish
from evaluator_host.migration.generate import generated_rows
from evaluator_host.migration.process import rewrite
from evaluator_host.migration.proof import Pair, Proving, Run, contract_after
from evaluator_host.migration.syntax import SOURCE_BYTES, Unreadable
from evaluator_host.migration.text import SourceText, read_text, unified_diff
from evaluator_host.model.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.schemas.migration import Migration, MigrationStatus, Remark
from evaluator_host.service import Service

_NAMES: Final = {
    Language.PYTHON: "evaluator.py",
    Language.JAVASCRIPT: "evaluator.js",
    Language.TYPESCRIPT: "evaluator.ts",
}


async def migrate(
    evaluator: Evaluator,
    rows: Sequence[Row] | None = None,
    *,
    run: Run,
    name: str | None = None,
    as_run: Callable[[str], str] = str,
    to: Contract = Contract.EVALUATE,
) -> Migration:
    """Rewrite a legacy evaluator and prove that its scores stay the same.

    Nothing of the code runs outside a sandbox.

    Args:
      evaluator: The legacy one.
      rows: To prove it on; None makes some up from what the code reads.
      run: Runs the old and the new code.
      name: Of its file, for the diff.
      to: The contract of the new code: `evaluate`, or `main` for one that is `evaluate` now.
      as_run: Makes of a file's code what runs, where that is not the same (`npm:` specifiers).

    Raises:
      HostError: as `Service.evaluate_batch`.
    """
    if (reason := _not_a_program(evaluator.code)) is not None:
        return _unchanged(evaluator, MigrationStatus.REFUSED, (Remark(None, reason),))
    source = read_text(evaluator.code, evaluator.language)
    wish = Wish(evaluator.settings.entry or "evaluate", evaluator.settings.correct_answer_key, to.value)
    try:
        rewritten = await rewrite(source.program, evaluator.language, wish)
    except Unreadable as error:
        status = MigrationStatus.NO_EVALUATOR if error.missing else MigrationStatus.REFUSED
        return _unchanged(evaluator, status, (Remark(error.line, error.reason),))
    if rewritten.code is None:
        return _unchanged(evaluator, MigrationStatus.CURRENT, ())
    code = source.restored(rewritten.code)
    old = replace(evaluator, code=as_run(evaluator.code), contract=Contract(rewritten.source))
    new = replace(evaluator, code=as_run(code), contract=contract_after(evaluator, to))
    given = rows if rows is not None else await asyncio.to_thread(_made_up, source.program, rewritten, wish)
    proof = await Proving(run).prove(Pair(old, new, rewritten.whole_row), given, generated=rows is None)
    return Migration(
        status=MigrationStatus.MIGRATED,
        language=evaluator.language,
        code=code,
        diff=unified_diff(evaluator.code, code, name or _NAMES[evaluator.language]),
        changes=(*_notes(source), *rewritten.changes),
        unresolved=rewritten.unresolved,
        proof=proof,
    )


def _not_a_program(code: str) -> str | None:
    """Return why a text is not even looked at."""
    try:
        size = len(code.encode())
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair, which is no character; paste it from its source again, as UTF-8"
    if size > SOURCE_BYTES:
        return f"it has {size >> 10} KB; at most {SOURCE_BYTES >> 10} KB are rewritten"
    return None


def runs_in(service: Service, workspace: str, lock: str | None = None) -> Run:
    """Return what runs code on a service, for a workspace."""

    async def run(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
        return await service.evaluate_batch(evaluator, list(rows), workspace=workspace, lock=lock)

    return run


def _made_up(program: str, rewritten: Rewritten, wish: Wish) -> list[Row]:
    key = rewritten.parameters[3] if rewritten.source == Contract.MAIN else wish.key
    return generated_rows(program, rewritten.parameters, key, columns=rewritten.columns, whole_row=rewritten.whole_row)


def _unchanged(evaluator: Evaluator, status: MigrationStatus, unresolved: tuple[Remark, ...]) -> Migration:
    return Migration(status, evaluator.language, evaluator.code, "", (), unresolved, None)


def _notes(source: SourceText) -> tuple[Remark, ...]:
    return tuple(Remark(None, note) for note in source.notes)
