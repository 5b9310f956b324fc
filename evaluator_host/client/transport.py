"""Sends the client's requests, blocking or asynchronously, from one definition of each method.

Every method of the client is written once, as a coroutine or an async generator over a `Transport`, and decorated with
`verb` or `stream`. `AsyncTransport` hands the coroutine to the caller, who awaits it. `SyncTransport` does blocking
I/O, so the coroutine never suspends: a single step runs it to its end, without an event loop or a thread.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from functools import wraps
from inspect import signature
from types import GenericAlias, NoneType
from typing import Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, cast, get_args, overload

import httpx

from ..types.errors import Busy
from .calls import Call, error_of, path_part, pause_s, query, read_answer, unreachable

P = ParamSpec("P")
T = TypeVar("T")
ReportT = TypeVar("ReportT")


class Transport(ABC):
    """Sends requests to one host.

    Args:
      base_url: URL of the host.
      retries: How often a call is sent again after `Busy`.
    """

    def __init__(self, base_url: httpx.URL, retries: int) -> None:
        self._base_url = base_url
        self._retries = retries

    async def send(self, call: Call[T]) -> T:
        """Return the response to a call.

        A streamed body is never sent again, because it cannot be read twice.

        Raises:
          HostUnreachable: no Evaluator Host answers at the URL.
          HostError: the host refused the request. The error has the same class as on the host.
        """
        retries = 0 if isinstance(call.body, AsyncGenerator) else self._retries
        while True:
            try:
                return read_answer(call, await self.exchange(call))
            except httpx.HTTPError as error:
                self._raise_unreachable(error)
            except Busy as busy:
                if retries <= 0:
                    raise
                retries -= 1
                await self.sleep(pause_s(busy))

    async def download(self, call: Call[Any]) -> AsyncGenerator[bytes, None]:
        """Yield the body of a response in chunks.

        Raises:
          HostUnreachable: nothing answers, or the connection broke.
          HostError: the host refused the request. This is raised before the first chunk.
        """
        try:
            async with aclosing(self.pieces(call)) as pieces:
                async for piece in pieces:
                    yield piece
        except httpx.HTTPError as error:
            self._raise_unreachable(error)

    def _raise_unreachable(self, error: httpx.HTTPError) -> NoReturn:
        raise unreachable(error, self._base_url) from error

    @abstractmethod
    async def exchange(self, call: Call[Any]) -> httpx.Response:
        """Send one request and return the response with its whole body."""

    @abstractmethod
    def pieces(self, call: Call[Any]) -> AsyncGenerator[bytes, None]:
        """Send one request and yield the response body in chunks as it arrives."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""

    @abstractmethod
    async def call_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that reads or writes a file, without blocking an event loop, and return its result."""


class SyncTransport(Transport):
    """Transport that blocks until each response arrives.

    Args:
      options: Arguments of `httpx.Client`.
      retries: How often a call is sent again after `Busy`.
    """

    def __init__(self, options: dict[str, Any], retries: int) -> None:
        self.http = httpx.Client(**options)
        super().__init__(self.http.base_url, retries)

    async def exchange(self, call: Call[Any]) -> httpx.Response:
        """Send one request and return the response with its whole body."""
        body = iterate(call.body) if isinstance(call.body, AsyncGenerator) else call.body
        return self.http.request(call.method, call.path, content=body, headers=call.headers)

    async def pieces(self, call: Call[Any]) -> AsyncGenerator[bytes, None]:
        """Send one request and yield the response body in chunks as it arrives."""
        with self.http.stream(call.method, call.path) as response:
            if not response.is_success:
                response.read()
                raise error_of(response)
            for piece in response.iter_bytes():
                yield piece

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        time.sleep(seconds)  # noqa: ASYNC251 - never on an event loop

    async def call_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that reads or writes a file, and return its result."""
        return function(*args, **kwargs)


class AsyncTransport(Transport):
    """Transport that never blocks the event loop.

    Args:
      options: Arguments of `httpx.AsyncClient`.
      retries: How often a call is sent again after `Busy`.
    """

    def __init__(self, options: dict[str, Any], retries: int) -> None:
        self.http = httpx.AsyncClient(**options)
        super().__init__(self.http.base_url, retries)

    async def exchange(self, call: Call[Any]) -> httpx.Response:
        """Send one request and return the response with its whole body."""
        return await self.http.request(call.method, call.path, content=call.body, headers=call.headers)

    async def pieces(self, call: Call[Any]) -> AsyncGenerator[bytes, None]:
        """Send one request and yield the response body in chunks as it arrives."""
        async with self.http.stream(call.method, call.path) as response:
            if not response.is_success:
                await response.aread()
                raise error_of(response)
            async for piece in response.aiter_bytes():
                yield piece

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        await asyncio.sleep(seconds)

    async def call_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """In a thread, call a function that reads or writes a file. Return the function's result."""
        return await asyncio.to_thread(function, *args, **kwargs)


TransportT = TypeVar("TransportT", bound=Transport)


class Verbs(Generic[TransportT]):
    """Base of every group of client methods: `Verbs[SyncTransport]` blocks, `Verbs[AsyncTransport]` is awaited.

    Args:
      transport: Sends the calls.
    """

    def __init__(self, transport: TransportT) -> None:
        self._transport = transport

    async def _get(self, path: str, kind: type[T]) -> T:
        return await self._transport.send(Call("GET", path, kind))


class Verb(Generic[P, T]):
    """The type of a client method as users see it.

    The method returns `T`, or in an async client a coroutine of `T`.
    """

    @overload
    def __get__(self, verbs: Verbs[SyncTransport], owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, verbs: Verbs[AsyncTransport], owner: object) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, verbs: object, owner: object) -> object:
        """Bind the method to a client.

        Only type checkers read this, because `verb` returns an ordinary function.
        """
        raise NotImplementedError


class Stream(Generic[P, T]):
    """The type of a client method that yields `T`: it returns a generator, or in an async client an async generator."""

    @overload
    def __get__(self, verbs: Verbs[SyncTransport], owner: object) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(self, verbs: Verbs[AsyncTransport], owner: object) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, verbs: object, owner: object) -> object:
        """Bind the method to a client.

        Only type checkers read this, because `stream` returns an ordinary function.
        """
        raise NotImplementedError


def verb(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Verb[P, T]:
    """Turn a coroutine method into a method of both clients: blocking in `Client`, awaited in `AsyncClient`."""

    @wraps(method)
    def bound(self: Verbs[Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        coroutine = method(self, *args, **kwargs)
        return run(coroutine) if isinstance(self._transport, SyncTransport) else coroutine

    return cast("Verb[P, T]", bound)


def stream(method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]]) -> Stream[P, T]:
    """Turn a `Verbs` method that returns an async generator into a method of both clients."""

    @wraps(method)
    def bound(self: Verbs[Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        items = method(self, *args, **kwargs)
        return iterate(items) if isinstance(self._transport, SyncTransport) else items

    shown = signature(method)
    generator = GenericAlias(Generator, (get_args(shown.return_annotation)[0], None, None))
    either = generator | shown.return_annotation
    bound.__signature__ = shown.replace(return_annotation=either)  # type: ignore[attr-defined] # read by `help`
    return cast("Stream[P, T]", bound)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    coroutine.close()
    raise AssertionError("the synchronous client has a method that waits for an event loop")  # pragma: no cover


def iterate(items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield the items of an async generator that never suspends."""
    try:
        while True:
            try:
                item = run(items.__anext__())
            except StopAsyncIteration:
                return
            yield item
    finally:
        run(items.aclose())


class NamedVerbs(Verbs[TransportT], Generic[TransportT, ReportT]):
    """Base of the methods for named objects in your key's workspace.

    For every method that takes a `name`:

    Args:
      name: Name of the evaluator, data set, …

    Raises:
      NotFound: there is no such object.
    """

    _PATH: ClassVar[str]  # path of these objects in the API
    _REPORT: ClassVar[Any]  # the type that `ReportT` stands for

    @verb
    async def all(self) -> list[ReportT]:
        """Return all objects.

        Data sets and files are sorted newest first, models begin with the operator's, others are sorted by name.
        """
        reports = cast("type[list[ReportT]]", GenericAlias(list, (self._REPORT,)))
        return await self._get(self._PATH, reports)

    @verb
    async def get(self, name: str) -> ReportT:
        """Return the object of this name; secrets and models come without their values and keys."""
        return await self._get(self._path(name), cast("type[ReportT]", self._REPORT))

    @verb
    async def delete(self, name: str, *, force: bool = False) -> None:
        """Delete the object of this name; the class documents what happens to jobs and evaluators that use it.

        Args:
          name: Name of the object.
          force: Whether to delete the object even if a schedule, alert, label queue, model or evaluator uses it.

        Raises:
          InUse: something uses the object; the message says what.
        """
        await self._transport.send(Call("DELETE", self._path(name) + query(force=force), NoneType))

    def _path(self, name: str, rest: str = "") -> str:
        return f"{self._PATH}/{path_part(name)}{rest and '/'}{rest}"
