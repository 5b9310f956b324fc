"""Wraps `evaluate`: exceptions become results, and every result gets the elapsed time."""

from __future__ import annotations

import time
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..models.models import ErrorEvaluationResult

if TYPE_CHECKING:
    from collections.abc import Callable


def track_evaluation_metrics(func: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `evaluate`: turn exceptions into results, and add the elapsed time to each result."""

    @wraps(func)
    async def tracked(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            result = await func(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever the author's code raises
            result = ErrorEvaluationResult(details=f"Exception thrown by evaluator: {error}")
        result.evaluation_time = time.perf_counter() - started
        return result

    return tracked
