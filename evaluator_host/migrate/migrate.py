"""Rewrites one legacy evaluator to the new signature and proves that its scores stay the same."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE, Caller
from evaluator_host.engine.service.source import clean
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.limited_process import CallLimits, LimitedProcesses
from evaluator_host.migrate.draft import Rewritten, Wish
from evaluator_host.migrate.proof import Pair, Proving, Run, contract_after, scoring
from evaluator_host.migrate.syntax import SOURCE_BYTES, Unreadable
from evaluator_host.migrate.worker import adapt_program, made_up_rows, rewrite_program, unified_diff
from evaluator_host.types.errors import LimitExceeded
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.migrations import Migration, MigrationStatus, Remark
from evaluator_host.types.outcome import EvaluationResult, Status
from evaluator_host.types.proof import Proof, ProofVerdict

_NAMES: Final = {
    Language.PYTHON: "evaluator.py",
    Language.JAVASCRIPT: "evaluator.js",
    Language.TYPESCRIPT: "evaluator.ts",
}
_MIGRATED: Final = (Contract.AUTO, Contract.EVALUATE, Contract.EVALUATE_V1, Contract.MAIN)
_LEGACY: Final = re.compile(r"\b(?:app_?params|correct_?answer)\s*[,:)=]", re.IGNORECASE)
_BOM = "\ufeff"
_LIMITS: Final = CallLimits(cpu_s=20, memory_mb=2048)  # ample: the largest program that is accepted takes 2 s
_read_rewritten: Final = Adapter(Rewritten).read


@dataclass(frozen=True, slots=True)
class MigrationContext:
    """The services that a migration uses, and the workspace that it runs for.

    Attributes:
      run: Runs the old and the new code in sandboxes.
      processes: Limited processes in which the code is parsed.
      workspace: Id of the workspace that owns the code.
    """

    run: Run
    processes: LimitedProcesses
    workspace: str = DEFAULT_WORKSPACE

    async def rewrite(self, code: str, language: Language, wish: Wish) -> Rewritten:
        """Rewrite a program, in a limited process.

        Raises:
          Unreadable: the program cannot be rewritten; the message says why.
          Busy: too many of the workspace's programs wait to be parsed.
          MachineExhausted: no process can be started.
        """
        try:
            answer = await self.call(rewrite_program, code, language, wish)
        except LimitExceeded as error:
            raise Unreadable(f"parsing the code exceeds the limits on memory and time: {error.detail}") from error
        if "refused" in answer:
            refused = answer["refused"]
            raise Unreadable(refused["message"], refused["line"], missing=refused["missing"])
        return _read_rewritten(answer)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the module `worker` in a limited process, and return its result."""
        return await self.processes.call(self.workspace, function, *args, limits=_LIMITS)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A program without a byte order mark, and with line feeds as line ends. `restored` restores the original ones.

    Attributes:
      program: The program with line feeds, without code fences or line numbers; it has as many lines as the file.
      notes: Messages about removed parts that `restored` does not add again.
    """

    program: str
    notes: tuple[str, ...] = ()
    bom: bool = False
    crlf: bool = False

    def restored(self, program: str) -> str:
        """Return a program with the line ends and the byte order mark of the original file."""
        if self.crlf:
            program = program.replace("\n", "\r\n")
        return _BOM + program if self.bom else program


def read_text(code: str, language: Language) -> SourceText:
    """Read the program in a file or pasted text: remove code fences and other remains of copying."""
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
    """Return whether cleaning changed more than a shebang line, which all parsers here read as a comment."""
    first, _, rest = plain.partition("\n")
    return cleaned not in (plain, "\n" + rest if first.startswith("#!") else plain)


async def migrate(
    evaluator: Evaluator,
    rows: Sequence[Row] | None = None,
    *,
    context: MigrationContext,
    name: str | None = None,
    as_run: Callable[[str], str] = str,
    to: Contract = Contract.EVALUATE,
    adapt: bool = False,
) -> Migration:
    """Rewrite a legacy evaluator and prove that its scores stay the same.

    The code never runs outside a sandbox.

    Args:
      evaluator: The legacy evaluator.
      rows: Rows for the proof; None generates rows from the code.
      context: Sandboxes and limited processes.
      name: File name for the diff; None for a default.
      to: The contract of the new code: `evaluate`, or `main` for code that is `evaluate` now.
      as_run: Converts the code of a file to the code to run, if they differ (`npm:` specifiers).
      adapt: Whether to keep the old code if it cannot be rewritten, or scores differently afterwards. A small
        `evaluate(inputs, outputs, trace)` then calls it.

    Raises:
      HostError: the host cannot run it now, see `Service.evaluate_batch` and `LimitedProcesses.call`.
    """
    if (reason := _not_a_program(evaluator.code)) is not None:
        return _unchanged(evaluator, MigrationStatus.REFUSED, (Remark(None, reason),))
    source = read_text(evaluator.code, evaluator.language)
    key = evaluator.settings.correct_answer_key
    wish = Wish(evaluator.settings.entry or "evaluate", key, to.value, whole_row=key == Wish().key)
    work = _Work(evaluator, rows, context, source, wish, name, as_run)
    other = await work.other_contract() if to is Contract.EVALUATE else None
    if other not in (None, Contract.FUNCTION):
        return await work.as_pasted(other)
    try:
        rewritten = await work.rewritten()
    except Unreadable as error:
        if error.missing and other is not None:
            return await work.as_pasted(other)
        status = MigrationStatus.NO_EVALUATOR if error.missing else MigrationStatus.REFUSED
        refused = _unchanged(evaluator, status, (Remark(error.line, error.reason),))
        return (await work.adapted(error.reason, error.line) if adapt else None) or refused
    if rewritten.code is None:
        current = _unchanged(evaluator, MigrationStatus.CURRENT, ())
        return current if other is None else await work.as_pasted(other)
    migration = await work.proven(rewritten, MigrationStatus.MIGRATED)
    if adapt and migration.proof is not None and migration.proof.verdict is ProofVerdict.DIFFERS:
        return await work.adapted(f"rewritten, it {migration.proof.text}", None) or migration
    return migration


@dataclass(frozen=True, slots=True)
class _Work:
    """One migration in progress: the evaluator, and what is needed to prove that its new code gives the same scores."""

    evaluator: Evaluator
    rows: Sequence[Row] | None
    context: MigrationContext
    source: SourceText
    wish: Wish
    name: str | None
    as_run: Callable[[str], str]

    async def other_contract(self) -> Contract | None:
        """Detect the code's contract in a sandbox. Return the contract if its code needs no migration, else None.

        Code with the contract `function` may still be legacy code, because its parameters may have any names.
        """
        contract = self.evaluator.contract
        if contract is Contract.AUTO and not _LEGACY.search(self.evaluator.code):
            [probed] = await self.context.run(self._pasted(), [Row()])
            contract = Contract(probed.evaluator.contract or Contract.AUTO)
        return None if contract in _MIGRATED else contract

    async def as_pasted(self, contract: Contract) -> Migration:
        """Return the result for code that runs unchanged.

        The proof in the result says how many of the caller's rows the code scores.
        """
        proof = scoring(await self.context.run(self._pasted(), self.rows)) if self.rows else None
        return replace(_unchanged(self.evaluator, MigrationStatus.AS_PASTED, ()), contract=contract, proof=proof)

    async def rewritten(self) -> Rewritten:
        """Rewrite the program to the new contract.

        Raises:
          Unreadable: the program cannot be rewritten; the message says why.
        """
        code, language = self.source.program, self.evaluator.language
        rewritten = await self.context.rewrite(code, language, self.wish)
        if rewritten.whole_row and self.rows is not None and await self._scores_as_given(rewritten):
            return await self.context.rewrite(code, language, replace(self.wish, whole_row=False))
        return rewritten

    async def proven(self, rewritten: Rewritten, status: MigrationStatus) -> Migration:
        """Prove a rewritten program. Return it with the diff from the old program, and the proof."""
        code = self.source.restored(rewritten.code or "")
        new = replace(
            self.evaluator, code=self.as_run(code), contract=contract_after(self.evaluator, Contract(self.wish.to))
        )
        if (given := self.rows) is None:
            made = await self.context.call(made_up_rows, self.source.program, rewritten, self.wish)
            given = [Row(**row) for row in made]
        shown = self.name or _NAMES[self.evaluator.language]
        diff = await self.context.call(unified_diff, self.evaluator.code, code, shown)
        pair = Pair(self._old(rewritten), new, rewritten.whole_row)
        proof = await Proving(self.context.run).prove(pair, given, generated=self.rows is None)
        return Migration(
            status=status,
            language=self.evaluator.language,
            code=code,
            diff=diff,
            changes=(*_notes(self.source), *rewritten.changes),
            unresolved=rewritten.unresolved,
            proof=proof,
        )

    async def _scores_as_given(self, rewritten: Rewritten) -> bool:
        """Return whether the old code, called by its own contract, scores at least one of the caller's rows."""
        results = await self.context.run(self._old(rewritten), self.rows or ())
        return any(one.status is Status.SCORED for one in results)

    async def adapted(self, reason: str, line: int | None) -> Migration | None:
        """Return the first adapted program (the old code, called by a new function) that scores the same, or None.

        Args:
          reason: Why the code was not rewritten.
          line: The line of code that is the reason.
        """
        if self.wish.to != Contract.EVALUATE:
            return None
        language = self.evaluator.language
        unproven = None
        for found in await self.context.call(adapt_program, self.source.program, language, self.wish):
            migration = await self.proven(_read_rewritten(found), MigrationStatus.ADAPTED)
            changes = (Remark(line, f"not rewritten: {reason}"), *migration.changes)
            migration = replace(migration, changes=changes)
            if migration.is_proven:
                return migration
            if unproven is None and migration.proof is not None and _is_by_chance(migration.proof):
                unproven = migration
        return unproven

    def _old(self, rewritten: Rewritten) -> Evaluator:
        return replace(self._pasted(), contract=Contract(rewritten.source))

    def _pasted(self) -> Evaluator:
        return replace(self.evaluator, code=self.as_run(self.evaluator.code))


def _not_a_program(code: str) -> str | None:
    """Return why code is refused before it is parsed, or None."""
    try:
        size = len(code.encode())
    except UnicodeEncodeError:
        return "the code contains half of a surrogate pair, which is not a character; copy the code again, as UTF-8"
    if size > SOURCE_BYTES:
        return f"the code is {size >> 10} KB long; at most {SOURCE_BYTES >> 10} KB can be rewritten"
    return None


def migration_context(service: Service, workspace: str, lock: str | None = None) -> MigrationContext:
    """Make the context for migrations on a service; `lock` is the lock file of the evaluator's packages, as JSON."""

    async def run(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
        return await service.evaluate_batch(evaluator, list(rows), caller=Caller(workspace, lock))

    return MigrationContext(run, service.processes, workspace)


def _unchanged(evaluator: Evaluator, status: MigrationStatus, unresolved: tuple[Remark, ...]) -> Migration:
    return Migration(status, evaluator.language, evaluator.code, "", (), unresolved, None)


def _is_by_chance(proof: Proof) -> bool:
    """Return whether the old code scores rows, but gives different scores when it runs again."""
    return proof.verdict is ProofVerdict.NOT_COMPARABLE and proof.scored > 0


def _notes(source: SourceText) -> tuple[Remark, ...]:
    return tuple(Remark(None, note) for note in source.notes)
