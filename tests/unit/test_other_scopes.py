"""The middleware that checks host names, origins and keys refuses connections that are not HTTP."""

from typing import Any

import pytest

from evaluator_host.platform.http.middleware import AccessMiddleware


@pytest.mark.parametrize("kind", ["websocket", "webtransport", "raw"])
async def test_only_http_and_the_start_of_the_application_pass(kind: str) -> None:
    seen = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope["type"])

    async def none() -> Any:
        raise AssertionError("the middleware must not read from this connection")

    middleware = AccessMiddleware(
        app, access=None, hosts=(), body_bytes=1, upload_bytes=1, body_timeout_s=1, memory_bytes=1, open_paths=("/",)
    )
    with pytest.raises(NotImplementedError, match=f"speaks HTTP only, not {kind}"):
        await middleware({"type": kind, "path": "/", "headers": []}, none, none)
    await middleware({"type": "lifespan"}, none, none)
    assert seen == ["lifespan"]
