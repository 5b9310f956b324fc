"""Converts a row to the body of a call, and the outcome of the call to a result.

Only this module decides the status of a result.
"""

import asyncio
import time
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from evaluator_host.engine.contracts.base import BindOne
from evaluator_host.engine.contracts.binding import encode
from evaluator_host.engine.contracts.every import EVERY, interpret_every
from evaluator_host.engine.contracts.interpret import Scored, with_own_name
from evaluator_host.engine.contracts.parameters import row_notes, suspicious_parameters
from evaluator_host.engine.contracts.reads import fields_not_read
from evaluator_host.engine.contracts.row_binding import (
    decoded_row,
    encoded_row,
    from_child,
    shape,
    shape_in_child,
    shape_unread,
    shaped_at_once,
)
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.pool import Lease, Slot
from evaluator_host.engine.sandbox.protocol import BODY_BYTES, Body, parts_of
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.engine.service import missing_imports
from evaluator_host.engine.service.advice import advised, without_repetition
from evaluator_host.engine.service.prepared import Prepared
from evaluator_host.engine.service.source import CleanSource
from evaluator_host.engine.system.limited_process import CallLimits, LimitedProcesses
from evaluator_host.types.bounds import ROUNDING, reaches
from evaluator_host.types.errors import LimitExceeded
from evaluator_host.types.evaluator import (
    Contract,
    EncodedRow,
    Evaluator,
    EvaluatorSettings,
    Json,
    Language,
    Row,
)
from evaluator_host.types.json_values import LARGE_BYTES, VALUE_DEPTH, encode_json, nests_within
from evaluator_host.types.outcome import (
    EnvironmentInfo,
    ErrorCode,
    EvaluationError,
    EvaluationResult,
    EvaluatorInfo,
    Failed,
    Kind,
    Loaded,
    Logs,
    MissingImport,
    Note,
    Outcome,
    Returned,
    SandboxInfo,
    Skipped,
    Status,
    Timing,
)
from evaluator_host.types.warnings import WARNINGS, code_threshold_notes, remedy_of

_PINS_PATIENCE_S: Final = 5.0  # how long a result may wait for exact pins, in seconds
_SHOWN_KEYS, _KEY_CHARS = 10, 80
# start of the message that libraries for comparing formulas log at their own time limit
_GAVE_UP: Final = "Timeout during "
# a score from 1 to 10 is probably a rating; a score from 10 to 100 is probably a percentage
_SCALE, _PERCENT = 10, 100
_SHAPING: Final = CallLimits(cpu_s=20, memory_mb=1024, argument_bytes=BODY_BYTES + (1 << 20), result_bytes=BODY_BYTES)


@dataclass(frozen=True, slots=True)
class Bound:
    """The JSON body of a call, whole or in parts, or an error instead; `notes` are added to the result."""

    body: Body | EvaluationError
    notes: tuple[Note, ...] = ()


async def bind(
    processes: LimitedProcesses, prepared: Prepared, loaded: Loaded, row: Row | EncodedRow | EvaluationError
) -> Bound:
    """Return the body of the call for a row, in the form for the contract that the runner has found.

    If `row` is an error, it is returned unchanged.

    Raises:
      Busy: too many large rows of the workspace are already waiting.
      MachineExhausted: this machine is too busy to read the row.
    """
    if isinstance(row, EvaluationError):
        return Bound(row)
    how = (loaded.contract, prepared.evaluator.settings, prepared.evaluator.language, fields_not_read(loaded))
    if (small := shaped_at_once(row)) is not None:
        shaped, notes = shape(small, *how)
        notes = (*notes, *row_notes(prepared.evaluator, loaded, small))
    else:
        encoded = await asyncio.to_thread(encoded_row, row) if isinstance(row, Row) else row
        if isinstance(encoded, EvaluationError):
            return Bound(encoded)
        unread = await asyncio.to_thread(shape_unread, encoded, *how)
        if unread is not None:
            return _checked(*unread)
        more = await asyncio.to_thread(encode_json, {"index": encoded.index, "answers": encoded.answers})
        try:
            answer = await processes.call(
                prepared.request.workspace, shape_in_child, encoded.body, more, *how, limits=_SHAPING
            )
        except LimitExceeded as error:
            return Bound(EvaluationError(ErrorCode.BINDING_ERROR, error.detail, hint="send less in one row"))
        shaped, notes = await asyncio.to_thread(from_child, answer)
    return _checked(shaped, notes)


def _checked(shaped: Body | EvaluationError, notes: tuple[Note, ...]) -> Bound:
    if not isinstance(shaped, EvaluationError):
        size = sum(map(len, parts_of(shaped)))
        if size > BODY_BYTES:
            shaped = _too_long("the row takes", size, hint="send less in one row")
    return Bound(shaped, notes)


async def bind_together(
    bind_one: BindOne, rows: AsyncIterable[Row | EncodedRow], settings: EvaluatorSettings
) -> Bound | None:
    """Return the call's body for scoring all rows together, or None if there are no rows.

    Rows are kept only as JSON. If their JSON is larger than a sandbox accepts, return an error instead.
    """
    body = bytearray(b'{"together":[')
    empty = len(body)
    async for row in rows:
        small = shaped_at_once(row)
        part = (
            encode(bind_one(small, settings)) if small else await asyncio.to_thread(_encoded, bind_one, row, settings)
        )
        if isinstance(part, EvaluationError):
            return Bound(part)
        if len(body) > empty:
            body += b","
        body += part
        if len(body) + 2 > BODY_BYTES:
            return Bound(_too_long("all rows in total take over", BODY_BYTES, hint="send fewer rows"))
    return Bound(bytes(body + b"]}")) if len(body) > empty else None


def _encoded(bind_one: BindOne, row: Row | EncodedRow, settings: EvaluatorSettings) -> bytes | EvaluationError:
    return encode(bind_one(row if isinstance(row, Row) else decoded_row(row), settings))


def _too_long(what: str, size: int, *, hint: str) -> EvaluationError:
    message = f"{what} {size >> 20} MB as JSON; a sandbox accepts at most {BODY_BYTES >> 20} MB"
    return EvaluationError(ErrorCode.BINDING_ERROR, message, hint=hint)


@dataclass(frozen=True, slots=True)
class ResultContext:
    """The fields that are the same in all results of one lease, or of an evaluator that has no sandbox."""

    prepared: Prepared
    evaluator: EvaluatorInfo
    environment: EnvironmentInfo
    backend: str
    notes: tuple[Note, ...]  # notes on the source and the load
    warm: bool
    timing_ms: Timing  # timing of the first row, which had to wait for the sandbox and the package set
    load_logs: Logs  # what a Python evaluator printed while it was loaded for this lease
    settings: EvaluatorSettings | None = None  # settings with the name of the entry; None if it is unknown
    imports: tuple[MissingImport, ...] = ()  # failed imports that the code caught
    not_loaded: tuple[str, ...] = ()  # missing modules that the code does not need


# contexts of earlier leases, which got a loaded sandbox without waiting
_CONTEXTS: Final = WeakKeyDictionary[Slot, ResultContext]()


def leased_context(prepared: Prepared, lease: Lease) -> ResultContext:
    """Return the result fields that are the same for all rows evaluated in a leased sandbox.

    If a lease got a loaded sandbox without waiting, the result is cached for the next leases of this sandbox.
    """
    if not lease.warm or lease.queue_ms:
        return _leased_context(prepared, lease)
    known = _CONTEXTS.get(lease.slot)
    if known is None or known.prepared is not prepared:
        known = _CONTEXTS[lease.slot] = _leased_context(prepared, lease)
    return known


def _leased_context(prepared: Prepared, lease: Lease) -> ResultContext:
    loaded, sandbox = lease.loaded, lease.sandbox
    # JavaScript code is loaded again for each row, and so prints the same text again
    is_python = prepared.evaluator.language is Language.PYTHON
    return ResultContext(
        prepared,
        _evaluator_info(prepared, loaded),
        environment_info(prepared, sandbox),
        sandbox.backend,
        notes=load_notes(prepared, loaded),
        warm=lease.warm,
        timing_ms=Timing(
            queue=round(lease.queue_ms, 3),
            environment=round(prepared.environment_ms, 3),
            load=round(lease.load_ms, 3),
        ),
        load_logs=loaded.logs if is_python and not lease.warm else Logs(),
        settings=replace(prepared.evaluator.settings, entry=loaded.entry),
        imports=loaded.imports,
        not_loaded=loaded.not_loaded,
    )


def load_notes(prepared: Prepared, loaded: Loaded) -> tuple[Note, ...]:
    """Return the warnings about a loaded evaluator: about its source, its load and its parameters."""
    of_runner = map(dialect_of(loaded.contract).explain, loaded.notes)
    config = prepared.evaluator.settings.config
    unread = [] if _is_made(loaded) else dialect_of(loaded.contract).unread_keys(config)
    return (
        *prepared.notes,
        *of_runner,
        *suspicious_parameters(prepared.evaluator, loaded),
        *((_unused_config(loaded.contract, unread),) if unread else ()),
    )


def unloaded_context(prepared: Prepared, backend: str) -> ResultContext:
    """Return the result fields that are the same for all rows if an evaluator did not load, or lost its sandbox."""
    return ResultContext(
        prepared,
        _evaluator_info(prepared, None),
        environment_info(prepared, None),
        backend,
        notes=prepared.notes,
        warm=False,
        timing_ms=Timing(environment=round(prepared.environment_ms, 3)),
        load_logs=Logs(),
    )


async def result(
    context: ResultContext,  # context of the row's lease
    outcome: Outcome | Skipped,  # the sandbox's answer, or the reason why the row was skipped
    *,
    started: float,  # `time.perf_counter()` when the row's time began
    notes: tuple[Note, ...] = (),  # notes on the row's arguments
    # whether it is the first row of its lease, the only one that waited for a sandbox and printed while loading
    first: bool = True,
) -> EvaluationResult:
    """Return the normalised result of one row.

    A large value is read in a thread.
    """
    run_ms, peak = (0.0, None) if isinstance(outcome, Skipped) else (outcome.run_ms, outcome.peak_memory_kb)
    if first and (context.load_logs.stdout or context.load_logs.stderr):
        outcome = _with_logs_of_load(outcome, context.load_logs)
    waited = context.timing_ms if first else Timing()
    info = RunInfo(
        timing_ms=Timing(
            queue=waited.queue,
            environment=waited.environment,
            load=waited.load,
            run=round(run_ms, 3),
            total=round((time.perf_counter() - started) * 1000, 3),
        ),
        evaluator=context.evaluator,
        environment=context.environment,
        sandbox=SandboxInfo(context.backend, warm=context.warm or not first, peak_memory_kb=peak),
        settings=context.settings,
        not_loaded=context.not_loaded,
    )
    prepared, all_notes = context.prepared, (*context.notes, *notes) if notes else context.notes
    if isinstance(outcome, Failed):
        outcome = replace(outcome, imports=missing_imports.missing_of(outcome, prepared.evaluator))
    if not isinstance(outcome, Skipped) and (outcome.imports or context.imports):
        outcome = replace(outcome, imports=await _with_pins(prepared, (*context.imports, *outcome.imports)))
        all_notes = (*all_notes, *missing_imports.notes(missing_imports.caught(outcome), prepared.evaluator))
    if not isinstance(outcome, Skipped) and outcome.unset_params:
        all_notes = (*all_notes, *(_unset_param(key) for key in outcome.unset_params))
    read = partial(normalise, outcome, prepared.evaluator, info=info, notes=all_notes, source=prepared.source)
    return read() if size_bytes(outcome) <= LARGE_BYTES else await asyncio.to_thread(read)


def _is_made(loaded: Loaded) -> bool:
    """Return whether the entry is a method of an object, which gets the configuration when it is made."""
    shown = loaded.parameters if loaded.entry == EVERY else (loaded.entry,)
    return any("." in one.partition("(")[0] for one in shown)


def _unused_config(contract: Contract, keys: list[str]) -> Note:
    shown = ", ".join(key[:_KEY_CHARS] for key in keys[:_SHOWN_KEYS]) + (", …" if len(keys) > _SHOWN_KEYS else "")
    message = f"contract {contract} does not read these keys of `settings.config`: {shown}"
    return Note("unused_config", message, remedy_of("unused_config"))


def _unset_param(key: str) -> Note:
    message = f"the code reads {key!r} of `app_params`, which was not given"
    return Note("missing_param", message, remedy_of("missing_param"))


async def _with_pins(prepared: Prepared, missing: tuple[MissingImport, ...]) -> tuple[MissingImport, ...]:
    workspace = prepared.request.workspace
    return await prepared.pins.find(missing, prepared.evaluator, workspace, patience_s=_PINS_PATIENCE_S)


def size_bytes(outcome: Outcome | Skipped) -> int:
    """Return roughly how many bytes of memory an outcome takes."""
    return 0 if isinstance(outcome, Skipped) else outcome.size_bytes


def _with_logs_of_load(outcome: Outcome | Skipped, loading: Logs) -> Outcome | Skipped:
    if isinstance(outcome, Skipped):
        return outcome
    own = outcome.logs
    logs = Logs(loading.stdout + own.stdout, loading.stderr + own.stderr, loading.truncated or own.truncated)
    return replace(outcome, logs=logs)


def _evaluator_info(prepared: Prepared, loaded: Loaded | None) -> EvaluatorInfo:
    evaluator = prepared.evaluator
    return EvaluatorInfo(
        name=evaluator.name,
        version=evaluator.version,
        digest=prepared.digest,
        language=evaluator.language,
        contract=loaded.contract if loaded else None,
        contract_source=loaded.contract_source if loaded else None,
        grants=evaluator.grants,
    )


def environment_info(prepared: Prepared, sandbox: Sandbox | None) -> EnvironmentInfo:
    """Return the facts about the environment that results contain; the sandbox reports the runtime's exact version."""
    environment = prepared.environment
    return EnvironmentInfo(
        digest=environment.digest,
        runtime=sandbox.runtime if sandbox else environment.runtime,
        packages=environment.packages,
    )


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The fields of a result that describe the run. `evaluator.contract` decides how the returned value is read."""

    timing_ms: Timing
    evaluator: EvaluatorInfo
    environment: EnvironmentInfo
    sandbox: SandboxInfo
    settings: EvaluatorSettings | None = None  # settings with the name of the entry; None for the evaluator's settings
    not_loaded: tuple[str, ...] = ()  # missing modules that the code does not need

    def result(
        self,
        status: Status,
        logs: Logs,
        *,
        notes: tuple[Note, ...],
        error: EvaluationError | None = None,
        value: Json = None,
        scored: Scored | None = None,
    ) -> EvaluationResult:
        """Return a row's result in this run. If `scored` is None, it has no score."""
        scored = scored or Scored(score=None, passed=None, metrics={})
        return EvaluationResult(
            status=status,
            score=scored.score,
            passed=scored.passed,
            label=scored.label,
            reason=scored.reason,
            metrics=scored.metrics,
            value=value,
            warnings=notes,
            error=error,
            logs=logs,
            timing_ms=self.timing_ms,
            evaluator=self.evaluator,
            environment=self.environment,
            sandbox=self.sandbox,
            native=scored.native,
            not_loaded=self.not_loaded,
        )


def normalise(
    outcome: Outcome | Skipped,  # the sandbox's answer, a `Failed` with a binding error, or why the row was skipped
    evaluator: Evaluator,  # evaluator whose threshold and language apply
    *,
    info: RunInfo,  # fields that are copied to the result; the contract in them decides how the value is read
    notes: tuple[Note, ...] = (),  # notes of the host (source, load, trace), which come before the notes of the sandbox
    source: CleanSource | None = None,  # maps positions of errors to the pasted code
) -> EvaluationResult:
    """Return the normalised result of one row, from the outcome of its call.

    A score outside 0..1 is not changed, but gets a warning. `passed` is the evaluator's own verdict (a bool, or a key
    of the returned object). Without a verdict, it says whether the score reaches the threshold, which may be 0.
    """
    contract = info.evaluator.contract
    rules = dialect_of(Contract.EVALUATE if contract is None or contract is Contract.AUTO else contract)
    if isinstance(outcome, Failed):
        error = outcome.error if source is None else source.locate(outcome.error)
        error = without_repetition(advised(error, evaluator, rules.contract, outcome), notes)
        kept = _without_score(rules.native_of_failure(error, evaluator.language))
        return info.result(Status.FAILED, outcome.logs, notes=notes, error=error, scored=kept)
    if isinstance(outcome, Skipped):
        return info.result(Status.SKIPPED, Logs(), notes=(outcome.note,))
    settings = info.settings or evaluator.settings
    advise = partial(_advised_with, evaluator, rules.contract, outcome.imports)
    if settings.entry == EVERY:
        language, code = evaluator.language, evaluator.code
        scored, value = interpret_every(rules, outcome, language, evaluator.settings, code, advise=advise)
        outcome = replace(outcome, value=value)
    else:
        scored = rules.interpret(outcome, evaluator.language, settings=settings)
        scored = with_own_name(scored, evaluator.code) if isinstance(scored, Scored) else scored
    if isinstance(scored, EvaluationError):
        scored = _without_score(rules.native_of_failure(scored, evaluator.language), scored)
    known = {note.code for note in notes} & {"missing_column"}  # the host's own warning has more details
    told = [note for note in outcome.notes if note.code not in known]
    warnings = (*notes, *map(rules.explain, told), *scored.notes, *_gave_up(outcome.logs))
    if scored.error is not None:
        value, kept = _value(outcome), _without_score(scored.native)
        error = advise(scored.error)
        return info.result(Status.FAILED, outcome.logs, notes=warnings, error=error, value=value, scored=kept)
    if rules.apply_threshold is not None and settings.entry != EVERY:
        scored = rules.apply_threshold(scored, evaluator.threshold, evaluator.language)
    if (score := scored.score) is not None:
        if scored.passed is None and evaluator.threshold is not None:
            scored = replace(scored, passed=reaches(score, evaluator.threshold))
            warnings = (*warnings, *(code_threshold_notes(evaluator) if 0 <= score <= 1 else ()))
        if not -ROUNDING <= score <= 1 + ROUNDING:
            warnings = (*warnings, _out_of_range(score))
    status = Status.SKIPPED if scored.skipped else Status.SCORED
    return info.result(status, outcome.logs, notes=warnings, value=outcome.value, scored=scored)


def _advised_with(
    evaluator: Evaluator, contract: Contract, imports: tuple[MissingImport, ...], error: EvaluationError
) -> EvaluationError:
    return advised(error, evaluator, contract, Failed(error, imports=imports))


def _gave_up(logs: Logs) -> tuple[Note, ...]:
    """Return a warning if the logs say that a library stopped at its own time limit, which also counts waiting."""
    if _GAVE_UP not in logs.stderr:
        return ()
    kind = WARNINGS["own_time_limit"]
    return (Note("own_time_limit", kind.meaning, kind.remedy),)


def _out_of_range(score: float) -> Note:
    remedy = "if it is a percentage, divide it by 100" if _SCALE < score <= _PERCENT else remedy_of("out_of_range")
    return Note("out_of_range", f"score {score} lies outside 0..1", remedy)


def _without_score(native: tuple[dict[str, Json], ...], error: EvaluationError | None = None) -> Scored:
    return Scored(None, None, {}, native=native, error=error)


def _value(returned: Returned) -> Json:
    """Return a refused value, to show it in the result; None if the value is not JSON, or is nested too deeply."""
    if returned.kind in (Kind.MISSING, Kind.UNSUPPORTED) or not nests_within(returned.value, VALUE_DEPTH):
        return None
    return returned.value
