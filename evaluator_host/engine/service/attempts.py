"""Replaces lost sandboxes, counts how often a row has lost its sandbox, and gets answers of models for rows."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from evaluator_host.engine.contracts.model_requests import Ask, asks_of
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.pool import Lease, LeaseRequest, Pool
from evaluator_host.engine.sandbox.session import RunnerGaveUp
from evaluator_host.engine.service.model_grants import GRANTED, ModelGrant, ModelTerms, RowGate
from evaluator_host.engine.system.spans import Attributes, recorder
from evaluator_host.types.errors import HostBusy, HostError, SandboxLost
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Json, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import (
    ErrorCode,
    EvaluationError,
    Failed,
    Loaded,
    Outcome,
)
from evaluator_host.types.redaction import Redactor

# seconds to wait before each replacement of a sandbox that was lost while it loaded
_PAUSES_S: Final = (0.0, 0.2, 1.0)
_LOSSES: Final = 2  # maximum number of sandboxes that a row may lose; after the last loss, the row fails
_STARVED: Final = 3  # maximum number of sandboxes that a row may lose for lack of processor time
_ANSWERS: Final = 32  # maximum number of answers from models for one row, over all its calls
_REQUESTS_BYTES: Final = 1 << 20  # maximum size, in bytes of JSON, of the requests and responses in a result


class LostRows:
    """Counts how often each row of an evaluator has lost its sandbox or got no processor time.

    `digest` is the digest of the evaluator.
    """

    def __init__(self, digest: str) -> None:
        self._digest = digest
        self._losses: dict[int, int] = {}

    def outcome(self, index: int, error: SandboxLost | HostBusy) -> Failed | None:
        """Count a loss for the row at `index`; return None if the row may be tried again, else the row's outcome."""
        losses = self._losses[index] = self._losses.get(index, 0) + 1
        if losses >= (_STARVED if isinstance(error, HostBusy) else _LOSSES):
            return _lost(error)
        if (spans := recorder()) is not None:
            lost: Attributes = {"evaluator_host.evaluator.digest": self._digest, "evaluator_host.status": "lost"}
            spans.ended("evaluate", 0.0, {**lost, "error.type": error.code})
        return None


def pause_with(gate: RowGate, pool: Pool, lease: Lease) -> None:
    """Make a row's gate tell the pool when the row waits. While the row waits, its sandbox counts as paused."""
    gate.tell_waits(lambda waits: pool.pause(lease, waits=waits), lambda: pool.resume(lease))


def settled(outcome: Outcome, gate: RowGate) -> Outcome:
    """Return a row's outcome, or a failure if a model request exceeded a budget or had no recorded answer."""
    if gate.problem is None:
        return outcome
    return Failed(gate.problem, outcome.logs, outcome.run_ms, outcome.peak_memory_kb, size_bytes=outcome.size_bytes)


async def lease_sandbox(pool: Pool, request: LeaseRequest) -> Lease | Failed:
    """Lease a sandbox, or return a `Failed` if the evaluator does not load.

    If the sandbox is lost while it loads the evaluator, another sandbox replaces it.

    Raises:
      Busy: too many calls are already waiting.
      HostBusy: the machine gives sandboxes too little processor time.
      SandboxUnavailable: no sandbox can be started.
    """
    for pause_s in _PAUSES_S:
        try:
            return await pool.lease_sandbox(request)
        except RunnerGaveUp as error:
            if not error.killed:
                break  # the last attempt is made below the loop
            await asyncio.sleep(pause_s)
        except (SandboxLost, HostBusy):
            await asyncio.sleep(pause_s)
    try:
        return await pool.lease_sandbox(request)
    except SandboxLost as error:
        return _lost(error)


def _lost(error: SandboxLost | HostBusy) -> Failed:
    if isinstance(error, RunnerGaveUp):
        return error.failed
    return Failed(EvaluationError(ErrorCode(error.code), error.detail, hint="retry the call"))


async def each(rows: Iterable[Row | EncodedRow]) -> AsyncGenerator[Row | EncodedRow, None]:
    """Yield rows from an ordinary iterable as an asynchronous generator."""
    for row in rows:
        yield row


class ModelCalls(Protocol):
    """Interface for calling models on behalf of evaluators."""

    async def answer(self, ask: Ask, workspace: str) -> dict[str, Json] | EvaluationError:
        """Return `{"response": …}`, or `{"error": text, "status": int | None}` if the model does not answer.

        If the workspace has spent today's budget, return the `EvaluationError` for the row.

        Raises:
          HostError: the evaluator may not use the model, or its key is missing.
        """
        ...


class Models(ModelCalls, Protocol):
    """Interface for calling models on behalf of evaluators, and for granting them models, hosts and secrets."""

    async def reveal(self, evaluator: Evaluator, workspace: str) -> dict[str, str]:
        """Return the values of an evaluator's secrets, by the names of the variables in which the code gets them.

        Raises:
          InvalidRequest: the operator does not let code see one of the secrets.
          NotFound: there is no such secret.
        """
        ...

    async def grant(self, evaluator: Evaluator, workspace: str, terms: ModelTerms, *, redactor: Redactor) -> ModelGrant:
        """Return a grant with the models and keys that an evaluator may use, for one call or a part of a job.

        `redactor` masks the evaluator's secrets in recorded data.

        Raises:
          InvalidRequest: there is no such model, or the operator does not allow it.
          NotFound: a model's secret does not exist.
        """
        ...


def asked_for(outcome: Outcome, loaded: Loaded) -> tuple[Ask, ...]:
    """Return the model requests in the outcome of a row's call; empty if the call has finished without any."""
    return asks_of(outcome) if dialect_of(loaded.contract).asks_models else ()


async def answered(
    models: ModelCalls | None,
    row: Row | EncodedRow,
    asks: Sequence[Ask],
    *,
    workspace: str,
    gate: RowGate | None = None,
) -> Row | EncodedRow | EvaluationError:
    """Get answers to a row's model requests; return the row with the answers added, or the error for the row."""
    if models is None:
        return _failed(
            "this evaluator calls a model, and only a running host can do that",
            "give the address of a host with --url, or start one with `evaluator-host serve`",
        )
    if len(row.answers) + len(asks) > _ANSWERS:
        return _failed(
            f"the evaluator calls models more than {_ANSWERS} times for one row", "combine requests, or make fewer"
        )
    try:
        found = await asyncio.gather(
            *(
                gate.ask(ask.url.removeprefix(GRANTED), ask.request)
                if gate is not None and ask.url.startswith(GRANTED)
                else models.answer(ask, workspace)
                for ask in asks
            )
        )
    except HostError as error:
        hints = [problem.hint for problem in error.problems if problem.hint]
        return _failed(error.detail, hints[0] if hints else None)
    refused = [one for one in found if isinstance(one, EvaluationError)]
    if refused:
        return refused[0]
    given = [one for one in found if not isinstance(one, EvaluationError)]
    answers = {ask.name: answer for ask, answer in zip(asks, given, strict=True)}
    requests = await asyncio.to_thread(_requests, row.requests, asks, given)
    return replace(row, answers={**row.answers, **answers}, requests=requests)


def _requests(known: tuple[Json, ...], asks: Sequence[Ask], answers: Sequence[dict[str, Json]]) -> tuple[Json, ...]:
    found = list(known)
    room = _REQUESTS_BYTES - len(encode_json(found))
    for ask, answer in zip(asks, answers, strict=True):
        if "response" not in answer:
            continue
        one = {"request": {"model": ask.model, **ask.request}, "response": answer["response"]}
        size = len(encode_json(one))
        found.append(one if size <= room else {"request": None, "response": None, "left_out_bytes": size})
        room -= size if size <= room else 0
    return tuple(found)


def _failed(message: str, hint: str | None) -> EvaluationError:
    return EvaluationError(ErrorCode.TARGET_FAILED, message, hint=hint)
