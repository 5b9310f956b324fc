"""Rewrites one legacy evaluator to the new signature and proves that its scores stay the same."""

import asyncio
import difflib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from evaluator_host.migration.draft import Rewritten, Wish
from evaluator_host.migration.generate import generated_rows
from evaluator_host.migration.proof import Pair, Proving, Run, contract_after
from evaluator_host.migration.syntax import SOURCE_BYTES, Unreadable
from evaluator_host.model.errors import MachineExhausted
from evaluator_host.model.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.schemas.migration import Migration, MigrationStatus, Remark
from evaluator_host.service import Service
from evaluator_host.service.source import clean
from evaluator_host.system.processes import Command, run

_NAMES: Final = {
    Language.PYTHON: "evaluator.py",
    Language.JAVASCRIPT: "evaluator.js",
    Language.TYPESCRIPT: "evaluator.ts",
}
_BOM = "\ufeff"
_TIMEOUT_S: Final = 60.0  # wall clock; the process itself may use 20 s of a processor
_AT_ONCE: Final = 2
_read_answer: Final = TypeAdapter(Rewritten).validate_python
_turns = asyncio.Semaphore(_AT_ONCE)


async def rewrite(code: str, language: Language, wish: Wish) -> Rewritten:
    """Rewrite a program in a separate process.

    Raises:
      Unreadable: it cannot be rewritten; the text says why.
      MachineExhausted: no process can be started.
    """
    asked = json.dumps({"code": code, "language": language, "wish": asdict(wish)})
    async with _turns:
        answer = await _ask(asked.encode())
    if "refused" in answer:
        refused = answer["refused"]
        raise Unreadable(refused["message"], refused["line"], missing=refused.get("missing", False))
    try:
        return _read_answer(answer)
    except ValidationError as error:
        raise Unreadable("the parser process failed") from error


async def _ask(asked: bytes) -> dict[str, Any]:
    argv = (sys.executable, "-I", "-m", "evaluator_host.migration.worker")
    try:
        finished = await run(Command(argv, Path.cwd(), {}, stdin=asked), _TIMEOUT_S)
    except TimeoutError as error:
        raise Unreadable("parsing it takes too long") from error
    except OSError as error:
        raise MachineExhausted(f"no process for the parser can be started: {error.strerror}") from error
    try:
        answer = json.loads(finished.stdout)
    except ValueError as error:
        raise Unreadable("parsing it exceeds the limits on memory and time") from error
    return answer if isinstance(answer, dict) else {}


@dataclass(frozen=True, slots=True)
class SourceText:
    """A program without byte order mark and with plain line ends; remembers both to restore them.

    Attributes:
      program: With plain line feeds and without code fences or line numbers; it has as many lines as the file.
      notes: What was removed and does not come back.
    """

    program: str
    notes: tuple[str, ...] = ()
    bom: bool = False
    crlf: bool = False

    def restored(self, program: str) -> str:
        """Return a program with the original line ends and byte order mark."""
        if self.crlf:
            program = program.replace("\n", "\r\n")
        return _BOM + program if self.bom else program


def read_text(code: str, language: Language) -> SourceText:
    """Return the program in a file or in pasted text."""
    bom = code.startswith(_BOM)
    body = code.removeprefix(_BOM)
    crlf = "\r\n" in body
    plain = body.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = clean(plain, language)
    program = plain
    notes = tuple(note.message for note in cleaned.notes)
    if notes or _differs(plain, cleaned.code):
        program = cleaned.code
    return SourceText(program, notes, bom, crlf)


def _differs(plain: str, cleaned: str) -> bool:
    """Whether cleaning changed more than a shebang line, which every parser here reads as a comment."""
    first, _, rest = plain.partition("\n")
    return cleaned not in (plain, "\n" + rest if first.startswith("#!") else plain)


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the difference of two programs in the format of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


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

    The code never runs outside a sandbox.

    Args:
      evaluator: The legacy evaluator.
      rows: Rows for the proof; None generates rows from the code.
      run: Runs the old and the new code.
      name: File name for the diff.
      to: The contract of the new code: `evaluate`, or `main` for one that is `evaluate` now.
      as_run: Turns the code of a file into the code to run, where they differ (`npm:` specifiers).

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
    """Return why a text is refused before parsing, or None."""
    try:
        size = len(code.encode())
    except UnicodeEncodeError:
        return "it contains half of a surrogate pair, which is not a character; copy it from its source again, as UTF-8"
    if size > SOURCE_BYTES:
        return f"it has {size >> 10} KB; at most {SOURCE_BYTES >> 10} KB are rewritten"
    return None


def runs_in(service: Service, workspace: str, lock: str | None = None) -> Run:
    """Return a function that runs code on a service, for a workspace."""

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
