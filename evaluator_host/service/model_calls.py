"""Rows that ask models: the host answers, as far as it may, and the row is called again."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from evaluator_host.dialects.model_requests import Ask, asks_of
from evaluator_host.model.errors import HostError
from evaluator_host.model.evaluator import Contract, Json, Row
from evaluator_host.model.outcome import ErrorCode, EvaluationError, Loaded, Outcome

_ANSWERS: Final = 32  # of one row, however often it is called


class Models(Protocol):
    """Asks models for evaluators."""

    async def answer(self, ask: Ask, workspace: str) -> dict[str, Json]:
        """Return `{"response": …}`, or `{"error": text, "status": int | None}` when the model does not answer.

        Raises:
          HostError: it may not be asked, or its key is not there.
        """
        ...


def asked_for(outcome: Outcome, loaded: Loaded) -> tuple[Ask, ...]:
    """Return what a row asks of models before it can go on."""
    return asks_of(outcome) if loaded.contract is Contract.NEMO else ()


async def answered(models: Models | None, row: Row, asks: Sequence[Ask], *, workspace: str) -> Row | EvaluationError:
    """Return a row with the answers to what it asked, to be called again; or why it cannot be."""
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
