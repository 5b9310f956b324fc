"""Between a row and a sandbox: the call body before, the normalised result after."""

import time
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, replace

from evaluator_host.dialects.binding import Binding, encode
from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.evaluator import Language, Row
from evaluator_host.model.outcome import (
    EnvironmentInfo,
    ErrorCode,
    EvaluationError,
    EvaluationResult,
    EvaluatorInfo,
    Loaded,
    Logs,
    Note,
    Outcome,
    SandboxInfo,
    Skipped,
    Timing,
)
from evaluator_host.pool import Lease
from evaluator_host.sandbox.protocol import BODY_BYTES
from evaluator_host.sandbox.session import Sandbox
from evaluator_host.service.normalise import RunInfo, normalise
from evaluator_host.service.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Bound:
    """A row ready to be sent, as JSON, or why it cannot be; `notes` are for the result."""

    body: bytes | EvaluationError
    notes: tuple[Note, ...] = ()


def bind(prepared: Prepared, loaded: Loaded, row: Row | EvaluationError) -> Bound:
    """Shape a row for the contract that the runner found; an error in its place stays one."""
    if isinstance(row, EvaluationError):
        return Bound(row)
    binding = dialect_of(loaded.contract).bind(row, prepared.evaluator.settings)
    if not isinstance(binding, Binding):
        return Bound(binding)
    body = encode(binding)
    if isinstance(body, bytes) and len(body) > BODY_BYTES:
        body = _too_long("the row has", len(body), hint="send less in one row")
    return Bound(body, binding.notes)


async def bind_together(bind_one: Callable[[Row], Binding], rows: AsyncIterable[Row]) -> Bound | None:
    """Shape rows for the scores that they have together, None when there is none.

    They are held as JSON only, and no more of them than a sandbox takes.
    """
    body = bytearray(b'{"together":[')
    empty = len(body)
    async for row in rows:
        part = encode(bind_one(row))
        if isinstance(part, EvaluationError):
            return Bound(part)
        if len(body) > empty:
            body += b","
        body += part
        if len(body) + 2 > BODY_BYTES:
            return Bound(_too_long("the rows together have over", BODY_BYTES, hint="take fewer rows"))
    return Bound(bytes(body + b"]}")) if len(body) > empty else None


def _too_long(what: str, size: int, *, hint: str) -> EvaluationError:
    message = f"{what} {size >> 20} MB as JSON; a sandbox takes at most {BODY_BYTES >> 20} MB"
    return EvaluationError(ErrorCode.BINDING_ERROR, message, hint=hint)


def result(
    prepared: Prepared,
    lease: Lease | None,
    outcome: Outcome | Skipped,
    *,
    started: float,
    notes: tuple[Note, ...] = (),
    first: bool = True,
    backend: str = "",
) -> EvaluationResult:
    """Normalise one outcome.

    Args:
      prepared: The evaluator.
      outcome: What the sandbox answered, or a failure before it was asked.
      lease: Where it ran; None when the evaluator did not load.
      started: `time.perf_counter()` when the row's time began.
      notes: Of binding.
      first: Of its lease: the wait for the sandbox is this row's; later rows of a batch waited for none.
      backend: Its name, when there was no lease.
    """
    own_wait = lease is not None and first
    run_ms, peak = (0.0, None) if isinstance(outcome, Skipped) else (outcome.run_ms, outcome.peak_memory_kb)
    if lease is not None and first and not lease.warm and prepared.evaluator.language is Language.PYTHON:
        outcome = _with_logs_of_load(outcome, lease.loaded.logs)  # a row of JavaScript has printed it itself
    facts = lease.facts if lease is not None else None
    if not isinstance(facts, _Facts):
        facts = _facts(prepared, lease, backend)
        if lease is not None:
            lease.facts = facts
    info = RunInfo(
        timing_ms=Timing(
            queue=round(lease.queue_ms, 3) if lease and own_wait else 0.0,
            environment=round(prepared.environment_ms, 3) if first else 0.0,
            load=round(lease.load_ms, 3) if lease and own_wait else 0.0,
            run=round(run_ms, 3),
            total=round((time.perf_counter() - started) * 1000, 3),
        ),
        evaluator=facts.evaluator,
        environment=facts.environment,
        sandbox=SandboxInfo(
            backend=facts.backend,
            warm=lease is not None and (lease.warm or not first),
            peak_memory_kb=peak,
        ),
    )
    all_notes = (*facts.notes, *notes) if notes else facts.notes
    return normalise(outcome, prepared.evaluator, info=info, notes=all_notes, source=prepared.source)


def _with_logs_of_load(outcome: Outcome | Skipped, loading: Logs) -> Outcome | Skipped:
    """Put what the code printed while it was loaded before what the row printed that it was loaded for."""
    if isinstance(outcome, Skipped) or (not loading.stdout and not loading.stderr):
        return outcome
    own = outcome.logs
    logs = Logs(loading.stdout + own.stdout, loading.stderr + own.stderr, loading.truncated or own.truncated)
    return replace(outcome, logs=logs)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is the same for every row of a lease."""

    evaluator: EvaluatorInfo
    environment: EnvironmentInfo
    backend: str
    notes: tuple[Note, ...]


def _facts(prepared: Prepared, lease: Lease | None, backend: str) -> _Facts:
    evaluator, loaded = prepared.evaluator, lease.loaded if lease else None
    return _Facts(
        evaluator=EvaluatorInfo(
            name=evaluator.name,
            version=evaluator.version,
            digest=prepared.digest,
            language=evaluator.language,
            contract=loaded.contract if loaded else None,
            contract_source=loaded.contract_source if loaded else None,
        ),
        environment=environment_info(prepared, lease.sandbox if lease else None),
        backend=lease.sandbox.backend if lease else backend,
        notes=(*prepared.source.notes, *(loaded.notes if loaded else ())),
    )


def environment_info(prepared: Prepared, sandbox: Sandbox | None) -> EnvironmentInfo:
    """Say on what an evaluator runs; the runtime is what the runner said of itself."""
    environment = prepared.environment
    return EnvironmentInfo(
        digest=environment.digest,
        runtime=sandbox.runtime if sandbox else environment.runtime,
        packages=environment.packages,
    )
