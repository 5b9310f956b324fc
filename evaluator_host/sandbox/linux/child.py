"""Starts the processes of sandboxes: each gets its own pipes and no descriptors except those passed to it."""

import asyncio
import contextlib
import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

_PIPE_BYTES: Final = 1024 * 1024  # the most for an unprivileged process; large rows then need fewer wake-ups


class Child:
    """A child process with its three pipes; `exited` is set once it has ended and been reaped."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start it.

        Args:
          command: Program and arguments.
          env: Its whole environment.
          cwd: Working directory; the host's own when None.
          pass_fds: Descriptors it inherits besides 0, 1 and 2; no others.

        Raises:
          OSError: it cannot be started.
        """
        child_ends: list[int] = []
        own_ends: list[int] = []
        try:
            for writes in (True, False, False):
                ends = os.pipe()
                own_ends.append(ends[1] if writes else ends[0])
                child_ends.append(ends[0] if writes else ends[1])
            for end in own_ends:
                os.set_blocking(end, False)
                os.fchmod(end, 0o666)  # a runner that changed its user may still open its ends again through /proc
            for end in own_ends[:2]:
                with contextlib.suppress(OSError):  # over the user's quota of pipe pages: smaller works too
                    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            self._process = subprocess.Popen(  # noqa: S603 - commands are built here, nothing of a guest is in them
                command,
                stdin=child_ends[0],
                stdout=child_ends[1],
                stderr=child_ends[2],
                env=dict(env),
                cwd=cwd,
                pass_fds=pass_fds,
                close_fds=True,
                start_new_session=True,
            )
        except BaseException:
            for end in own_ends:
                os.close(end)
            raise
        finally:
            for end in child_ends:
                os.close(end)
        self.stdin, self.stdout, self.stderr = own_ends
        self.exited = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError:  # out of descriptors
            self._process.kill()
            self._process.wait()
            self.close()
            raise
        self._loop.add_reader(self._pidfd, self._on_exit)

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code of the child, or minus the signal that ended it; None while it runs."""
        return self._process.returncode

    def kill(self) -> None:
        """Send SIGKILL to the child, unless it has been reaped."""
        self._process.kill()

    def close(self) -> None:
        """Close the child's pipes; the event loop must not watch them any more."""
        for end in (self.stdin, self.stdout, self.stderr):
            os.close(end)

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self.exited.set()


async def readable(descriptor: int) -> None:
    """Wait until a descriptor has bytes to read; a pidfd is readable once its process has ended."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(descriptor, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(descriptor)
