"""Divides the host's memory for bodies and results between workspaces, so that no caller can fill it.

A request reserves memory before it is read. If there is no room, the request is refused with status 429. Results from
sandboxes are not refused, but wait for room, because their rows have already run.
"""

import asyncio
import ctypes
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from evaluator_host.types.errors import Busy

PER_FREE: Final = 3  # how many parts of the memory a workspace may take for each part that stays free
_SMALL: Final = 16  # a request that takes less than a sixteenth of the memory is small
_RETRY_S: Final = 2.0
_MMAP_THRESHOLD: Final = -3  # M_MMAP_THRESHOLD of malloc.h
_LARGE_BLOCK: Final = 1 << 20
_LARGE_PAGE: Final = 2 << 20
_LARGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_MADV_COLLAPSE: Final = 25  # advice of madvise(2) to use large pages now, in place of the present ones


class _Part:
    """One part of the memory, and how much of this part each workspace uses."""

    def __init__(self, total_bytes: int) -> None:
        self.total = total_bytes
        self.used = 0
        # bytes that each workspace uses; 0 for a workspace that has used some memory before
        self._by_workspace: Counter[str] = Counter()

    def fits(self, workspace: str, size: int) -> bool:
        free = self.total - self.used - size
        own = self._by_workspace[workspace]
        fair = not own or len(self._by_workspace) == 1 or own + size <= PER_FREE * free
        return not self.used or (free >= 0 and fair)

    def change(self, workspace: str, size: int) -> None:
        if size:
            self.used += size
            self._by_workspace[workspace] += size


class MemoryBudget:
    """The memory that requests under way may use. A quarter is reserved for small requests.

    Args:
      total_bytes: Size of the memory in bytes. A single large request may exceed it.
    """

    def __init__(self, total_bytes: int) -> None:
        self._least_large = total_bytes // _SMALL
        self._small = _Part(total_bytes // 4)
        self._large = _Part(total_bytes - total_bytes // 4)

    @property
    def used_bytes(self) -> int:
        """Return the sum of all reservations."""
        return self._small.used + self._large.used

    def hold(self, workspace: str) -> "Reservation":
        """Return a reservation for a request of a workspace: a context manager that has no memory yet."""
        return Reservation(self, workspace)

    def resize(self, workspace: str, before: int, after: int) -> None:
        """Change a reservation from `before` to `after` bytes; only `Reservation` calls this.

        Raises:
          Busy: there is not enough memory; the reservation keeps its size.
        """
        left = self._small if before < self._least_large else self._large
        part = self._small if after < self._least_large else self._large
        left.change(workspace, -before)
        if after and not part.fits(workspace, after):
            left.change(workspace, before)
            raise Busy(
                "the requests under way use all the memory that this host has for requests; send smaller requests, "
                f"or fewer at once, and try again in {_RETRY_S:.0f} s",
                retry_after_s=_RETRY_S,
            )
        part.change(workspace, after)


class Reservation:
    """The memory reserved for one request; it is free again at the end of the `with` block."""

    def __init__(self, budget: MemoryBudget, workspace: str) -> None:
        self._budget = budget
        self._workspace = workspace
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.resize(self._workspace, self._size, 0)
        self._size = 0

    def reserve(self, size: int) -> None:
        """Enlarge this reservation to `size` bytes; do nothing if it is already that large.

        Raises:
          Busy: there is not enough memory now.
        """
        if size > self._size:
            self._budget.resize(self._workspace, self._size, size)
            self._size = size

    def add(self, size: int) -> None:
        """Enlarge this reservation by `size` bytes; raise `Busy` if there is not enough memory."""
        self.reserve(self._size + size)


class ByteTurns:
    """Limits the total size of the work that runs at the same time; further work waits in order.

    Args:
      total_bytes: Maximum total size. Larger work runs alone.
    """

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> None:
        """Wait until there is room for `size` more bytes, and count them until they are given back."""
        if not self._waiting and self._fits(size):
            self._used += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.remove((size, turn))
            else:
                self.give_back(size)
            raise

    def give_back(self, size: int) -> None:
        """Stop counting bytes of `take`, and let waiting work begin."""
        self._used -= size
        while self._waiting and self._fits(self._waiting[0][0]):
            next_size, turn = self._waiting.popleft()
            if not turn.done():
                self._used += next_size
                turn.set_result(None)

    def _fits(self, size: int) -> bool:
        return not self._used or self._used + size <= self._total


def use_large_pages() -> None:
    """Move this process's present data to pages of 2 MB. This takes a tenth of a second.

    Before Linux 6.1, or if the operator has turned such pages off, do nothing.

    The host sleeps between calls, and other processes use the processor meanwhile. The processor then has to look up
    the host's pages again. Hundreds of pages of 4 KB would take a twelfth of a call's time.
    """
    with suppress(OSError, AttributeError):
        if "[never]" in _LARGE_PAGES.read_text(encoding="ascii"):
            return
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for first, end in _data_blocks():
            for page in range(-(-first // _LARGE_PAGE) * _LARGE_PAGE, end - _LARGE_PAGE + 1, _LARGE_PAGE):
                madvise(page, _LARGE_PAGE, _MADV_COLLAPSE)


def _data_blocks() -> Iterator[tuple[int, int]]:
    """Yield the addresses at which blocks of this process's own data begin and end."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        block, rights, _, _, _, *name = line.split()
        if rights == "rw-p" and name in ([], ["[heap]"]):
            first, _, end = block.partition("-")
            yield int(first, 16), int(end, 16)


def return_large_blocks() -> None:
    """Make glibc return each freed block of over 1 MB to the system.

    With another C library, do nothing.

    By default, once a large block has been freed, glibc keeps later blocks of up to 32 MB for reuse.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)
