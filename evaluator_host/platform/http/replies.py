"""Responds to calls that run an evaluator. A call is stopped when its client hangs up. Every call is audited."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from fastapi import Request, Response

from evaluator_host.engine.service.service import batch_too_large
from evaluator_host.platform.http.auth.access import AuditedCall
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.hang_up import HANG_UP, HangUp
from evaluator_host.platform.http.json_routes import json_response, large_json_response

_BATCH_BYTES: Final = 64 << 20  # largest response to a batch, in bytes
ERRORS: Final = {
    **describe_error(401, "The host needs a key, and the request has no valid key."),
    **describe_error(403, "The Origin or Host is not allowed."),
    **describe_error(404, "There is no stored evaluator or version of that name."),
    **describe_error(408, "The body did not arrive in time."),
    **describe_error(413, "The body is too large."),
    **describe_error(422, "The request is invalid; the error names the faulty fields."),
    **describe_error(429, "Too many calls are waiting, or the key has sent too many requests; see Retry-After."),
    **describe_error(503, "The host cannot start a sandbox, or the package index or the database does not answer."),
}


async def respond(
    request: Request, work: Coroutine[Any, Any, Any], audited_call: AuditedCall, *, large: bool = False
) -> Response:
    """Run the work and respond with its result, or stop the work when the client hangs up. Write the audit entry.

    A `large` result is encoded in a thread.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - an ASGI server calls this in a task
    hang_up: HangUp = request.scope[HANG_UP]
    is_gone = False

    def stop() -> None:
        nonlocal is_gone
        is_gone = True
        task.cancel()

    try:
        hang_up.watch(stop)
        try:
            result = await work
        finally:
            hang_up.leave()
        response = await large_json_response(result) if large else json_response(result)
        if len(response.body) > _BATCH_BYTES:
            raise batch_too_large(audited_call.rows)
        audited_call.answered(result)
        return response
    except asyncio.CancelledError:
        audited_call.abandoned()
        if not is_gone or task.uncancel():  # the host is shutting down
            raise
        return Response(status_code=499)  # the caller is gone, so nobody reads the response
    except Exception as error:
        audited_call.failed(error)
        raise
