"""Responds to calls that run an evaluator. A call ends when its client hangs up. Every call is audited."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from fastapi import Request, Response

from evaluator_host.engine.service.service import batch_too_large
from evaluator_host.platform.http.auth.access import AuditedCall
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import json_response, large_json_response

_BATCH_BYTES: Final = 64 << 20  # largest response to a batch, in bytes
ERRORS: Final = {
    **describe_error(401, "The host needs a key, and the request has none that works."),
    **describe_error(403, "The Origin or Host is not allowed."),
    **describe_error(404, "There is no stored evaluator or version of that name."),
    **describe_error(408, "The body did not arrive in time."),
    **describe_error(413, "The body is too large."),
    **describe_error(422, "The request is invalid; every faulty field is named."),
    **describe_error(429, "Too many calls are waiting, or the key calls too often; see Retry-After."),
    **describe_error(503, "No sandbox starts, or the package index or the database does not answer."),
}


async def respond(
    request: Request, work: Coroutine[Any, Any, Any], audited_call: AuditedCall, *, large: bool = False
) -> Response:
    """Run the work and return its result, or stop the work when the client hangs up. Record either in the audit log."""
    task = asyncio.create_task(work)
    hung_up = asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({task, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            audited_call.abandoned()
            return Response(status_code=499)  # the caller is gone, so nobody reads the response
        result = task.result()
        response = await large_json_response(result) if large else json_response(result)
        if len(response.body) > _BATCH_BYTES:
            raise batch_too_large(audited_call.rows)
        audited_call.answered(result)
        return response
    except asyncio.CancelledError:  # the host is shutting down
        audited_call.abandoned()
        raise
    except Exception as error:
        audited_call.failed(error)
        raise
    finally:
        for leftover in (task, hung_up):
            leftover.cancel()
        await asyncio.wait({task, hung_up})


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
