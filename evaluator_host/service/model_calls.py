"""Answers the model requests of a row, so that it can be called again with the answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from evaluator_host.dialects.model_requests import Ask, asks_of
from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.errors import HostError
from evaluator_host.model.evaluator import Json, Row
from evaluator_host.model.outcome import ErrorCode, EvaluationError, Loaded, Outcome

_ANSWERS: Final = 32  # most answers for one row, over all its calls


class Models(Protocol):
    """Calls models for evaluators."""

    async def answer(self, ask: Ask, workspace: str) -> dict[str, Json]:
        """Return `{"response": …}`, or `{"error": text, "status": int | None}` when the model does not answer.

        Raises:
          HostError: the evaluator may not use the model, or its key is missing.
        """
        ...


def asked_for(outcome: Outcome, loaded: Loaded) -> tuple[Ask, ...]:
    """Return the model requests that a row waits for; nothing when it has come to an end."""
    return asks_of(outcome) if dialect_of(loaded.contract).asks_models else ()


async def answered(models: Models | None, row: Row, asks: Sequence[Ask], *, workspace: str) -> Row | EvaluationError:
    """Return the row with the answers to its model requests, or the error that it fails with."""
    if models is None:
        return _failed("this host asks no models for evaluators", "score such rows on a running host")
    if len(row.answers) + len(asks) > _ANSWERS:
        return _failed(f"the evaluator asks models more than {_ANSWERS} times for one row", "ask less")
    try:
        found = await asyncio.gather(*(models.answer(ask, workspace) for ask in asks))
    except HostError as error:
        hints = [problem.hint for problem in error.problems if problem.hint]
        return _failed(error.detail, hints[0] if hints else None)
    answers = {ask.name: answer for ask, answer in zip(asks, found, strict=True)}
    return replace(row, answers={**row.answers, **answers})


def _failed(message: str, hint: str | None) -> EvaluationError:
    return EvaluationError(ErrorCode.TARGET_FAILED, message, hint=hint)
