"""Looks up host names that callers chose, in threads and with a time limit; each workspace gets only a few threads.

The system's look-ups cannot be stopped: if a name server does not answer, the system's resolver goes on trying. So a
thread counts towards its workspace until it is free again, even if the caller has given up earlier. The event loop's
own look-ups (uvloop has two threads for them) are only for names that the operator chose.
"""

import asyncio
import ipaddress
import socket
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from evaluator_host.engine.system.turns import may_take

LOOKUP_S: Final = 5.0
_PLACES: Final = 16
_EACH: Final = 4  # maximum number of look-ups of one workspace at once

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
Dial: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses at which a host and port may be reached, at least one; raises `LookupFailed`."""


class LookupFailed(Exception):
    """A host name has no address that may be used; `slow` means that no name server answered in time."""

    def __init__(self, message: str, *, slow: bool = False) -> None:
        super().__init__(message)
        self.slow = slow


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host name. Blocking."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def written_address(host: str) -> str | None:
    """Return the address if `host` is an address, even as `127.1` or `0x7f000001`; return None if it is a name."""
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    with suppress(OSError, UnicodeError):
        return socket.inet_ntoa(socket.inet_aton(host))
    return None


@dataclass(slots=True)
class _Lookup:
    workspace: str
    host: str
    port: int
    found: Future[list[str]] = field(default_factory=Future)


class Lookups:
    """16 threads that look up host names.

    A workspace has at most 4 threads, and gets one more only if more threads are free than the workspace already has.

    Any event loop of the process may use this object. Threads end when there is nothing to look up.

    Args:
      resolve: Function that returns the addresses of a host and port; blocking.
      limit_s: Seconds for one look-up, including its wait for a thread.
    """

    def __init__(self, resolve: Resolve = resolve, *, limit_s: float = LOOKUP_S) -> None:
        self._resolve = resolve
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[_Lookup]] = OrderedDict()

    async def look_up(self, host: str, port: int, *, workspace: str) -> list[str]:
        """Return the addresses of a host name: at least one, and each only once.

        Raises:
          LookupFailed: the name has no address, or none was found in time.
        """
        if (address := written_address(host)) is not None:
            return [address]
        lookup = _Lookup(workspace, host, port)
        with self._lock:
            self._waiting.setdefault(workspace, deque()).append(lookup)
            self._start()
        try:
            async with asyncio.timeout(self._limit_s):
                found = await asyncio.wrap_future(lookup.found)
        except TimeoutError as error:
            raise LookupFailed(self._why_slow(lookup), slow=True) from error
        except (OSError, UnicodeError) as error:
            raise LookupFailed(f"the address of {host} cannot be found: {error}") from error
        finally:
            self._forget(lookup)
        if not found:
            raise LookupFailed(f"{host} has no address")
        return list(dict.fromkeys(found))

    def _why_slow(self, lookup: _Lookup) -> str:
        if not lookup.found.cancelled():  # a thread had already begun to look up the name, so the name server is slow
            return f"the name server of {lookup.host} did not answer within {self._limit_s:g} s"
        own = self._running[lookup.workspace]
        if own:
            return (
                f"{lookup.host} was not looked up, because the host still waits for the name servers of {own} other "
                "names that this workspace looks up"
            )
        why = f"{lookup.host} was not looked up within {self._limit_s:g} s"
        return f"{why}: other workspaces look up names whose servers do not answer; try again"

    def _forget(self, lookup: _Lookup) -> None:
        with self._lock:
            waiting = self._waiting.get(lookup.workspace)
            if waiting is not None and lookup in waiting:
                waiting.remove(lookup)
                if not waiting:
                    del self._waiting[lookup.workspace]

    def _start(self) -> None:
        """Start threads for waiting look-ups, if their workspaces may have more. The caller must hold the lock."""
        while (lookup := self._next()) is not None:
            threading.Thread(target=self._work, args=(lookup,), name="lookup", daemon=True).start()

    def _next(self) -> _Lookup | None:
        """Remove and return the next look-up that may start, and count its thread; None if there is none.

        The caller must hold the lock.
        """
        for workspace in list(self._waiting):
            if not self._may_run(workspace):
                continue
            waiting = self._waiting.pop(workspace)
            lookup = waiting.popleft()
            if waiting:
                self._waiting[workspace] = waiting  # move the workspace to the end of the queue
            self._running[workspace] += 1
            return lookup
        return None

    def _may_run(self, workspace: str) -> bool:
        own, free = self._running[workspace], _PLACES - self._running.total()
        return free > 0 and own < _EACH and may_take(own, free, per_free=1, known=2)

    def _work(self, lookup: _Lookup | None) -> None:
        while lookup is not None:
            if lookup.found.set_running_or_notify_cancel():
                try:
                    lookup.found.set_result(list(self._resolve(lookup.host, lookup.port)))
                except Exception as error:  # noqa: BLE001 - for the caller
                    lookup.found.set_exception(error)
            with self._lock:
                self._running -= Counter([lookup.workspace])  # `-=` removes workspaces that have no thread left
                lookup = self._next()


TENANT_NAMES: Final = Lookups()
"""Looks up names that callers chose; there is one for the whole process, because its threads are shared."""

MODEL_NAMES: Final = Lookups()
"""Looks up hosts of models that the operator allows. It divides its threads among hosts, not among workspaces."""
