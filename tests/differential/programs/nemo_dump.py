"""Converts the result of a case to plain JSON, for the real package and for this project's SDK."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any


def dumped(run: Callable[[], Any]) -> dict[str, Any]:
    """Run a function; convert its result, or the error that it raised, to plain JSON."""

    async def soon() -> Any:
        return await asyncio.to_thread(run)

    return asyncio.run(dumped_soon(soon()))


async def dumped_soon(run: Awaitable[Any]) -> dict[str, Any]:
    """Await a run; convert its result, or the error that it raised, to plain JSON."""
    try:
        result = await run
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    plain = json.loads(json.dumps(result.model_dump(mode="json", exclude={"per_metric"})))
    figures, summary = plain["aggregate_scores"]["scores"], str(result.format_summary())
    return {"rows": plain["row_scores"], "figures": figures, "summary": summary}
