"""If a wire (routes for another platform) does not serve a path, passes the request on to that platform's server."""

import asyncio
from typing import Final

import httpx
from starlette.requests import Request
from starlette.responses import Response

from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import wire_request
from evaluator_host.types.errors import HostBusy, NotFound, TooLarge

_ANSWER_BYTES: Final = 16 << 20
# a browser that shows the answer must not run its scripts, since these could use this host
_AS_DATA: Final = {"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'"}
_PASSED_ON: Final = ("accept", "content-type")  # headers to pass on; none of them contains a key of this host


async def forward(calls: WireCalls, request: Request) -> Response:
    """Send a request to the server in the wire option `upstream`, and return its response.

    Raises:
      NotFound: `upstream` is not set.
      TooLarge: the response is over 16 MB.
      HostBusy: the server does not answer before the platform gives up.
    """
    below = wire_request(request.scope).below
    if calls.options.upstream is None:
        raise NotFound(
            f"{below[:200]} is not a path of this host, and the request cannot be forwarded, because no "
            "`upstream` is set"
        )
    body = await request.body()
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    address = httpx.URL(calls.options.upstream.rstrip("/") + below, query=request.scope["query_string"] or None)
    wait_s = max(0.1, wire_request(request.scope).ends_at - asyncio.get_running_loop().time())
    try:
        async with (
            asyncio.timeout(wait_s),
            httpx.AsyncClient(trust_env=False, timeout=wait_s) as client,
            client.stream(request.method, address, content=body, headers=headers) as answer,
        ):
            return await _bounded(answer)
    except (TimeoutError, httpx.HTTPError) as error:
        raise HostBusy("the server at `upstream` does not answer; check that it runs", retry_after_s=1.0) from error


async def _bounded(answer: httpx.Response) -> Response:
    content = bytearray()
    async for part in answer.aiter_bytes():
        content += part
        if len(content) > _ANSWER_BYTES:
            raise TooLarge(f"the server at `upstream` sent a response of over {_ANSWER_BYTES >> 20} MB")
        await asyncio.sleep(0)  # let other tasks run, since the data of one read may be thousands of tiny chunks
    return Response(bytes(content), answer.status_code, _AS_DATA, media_type=answer.headers.get("content-type"))
