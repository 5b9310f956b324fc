"""Lets the same tests use `Client` and `AsyncClient`; each call of the async client runs in a new event loop."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from evaluator_host.client import AsyncClient, Client
from evaluator_host.client.transport import Verbs

FLAVOURS = ("sync", "async")


@contextmanager
def open_client(flavour: str, url: str, **options: Any) -> Iterator[Client]:
    """Yield a client of either kind; tests can use both in the same way as the synchronous client."""
    if flavour == "sync":
        with Client(url, **options) as client:
            yield client
        return
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        awaited = AsyncClient(url, **options)
        try:
            yield cast("Client", _Run(awaited, runner))
        finally:
            runner.run(awaited.close())


class _Run:
    def __init__(self, verbs: Verbs[Any], runner: asyncio.Runner) -> None:
        self._verbs = verbs
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._verbs, name)
        if isinstance(found, Verbs):
            return _Run(found, self._runner)
        return self._called(found) if callable(found) else found

    def _called(self, verb: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = verb(*args, **kwargs)
            return self._iterate(answer) if isinstance(answer, AsyncGenerator) else self._runner.run(answer)

        return call

    def _iterate(self, items: AsyncGenerator[Any, None]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items, self)

        try:
            while (item := self._runner.run(following())) is not self:
                yield item
        finally:
            self._runner.run(items.aclose())
