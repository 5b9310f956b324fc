"""Starts the processes of sandboxes. Each gets pipes of its own, and only the descriptors that are passed to it."""

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

# size limit of a pipe for ordinary users; with large pipes, large rows need fewer wake-ups
_PIPE_BYTES: Final = 1024 * 1024


class Pipes:
    """Three pipes to a process: our ends and, until `hand_over`, the ends for the process.

    Attributes:
      stdin: Our end of the process's standard input. `stdout` and `stderr` are our ends of the other two pipes.
      given: The ends for the process.
    """

    def __init__(self) -> None:
        """Make the pipes.

        Raises:
          OSError: no descriptor is free.
        """
        self.given: list[int] = []
        own_ends: list[int] = []
        try:
            for writes in (True, False, False):
                ends = os.pipe()
                own_ends.append(ends[1] if writes else ends[0])
                self.given.append(ends[0] if writes else ends[1])
            for end in own_ends:
                os.set_blocking(end, False)
                os.fchmod(end, 0o666)  # let a runner that runs as another user open its ends again through /proc
            for end in own_ends[:2]:
                with contextlib.suppress(OSError):  # fails if the user has no pipe pages left; the pipe stays small
                    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        except BaseException:
            for end in own_ends:
                os.close(end)
            self.hand_over()
            raise
        self.stdin, self.stdout, self.stderr = own_ends

    def hand_over(self) -> None:
        """Close our copies of the ends for the process, after it has inherited them or failed to start."""
        while self.given:
            os.close(self.given.pop())

    def close(self) -> None:
        """Close our ends. The event loop must have stopped watching them before."""
        for end in (self.stdin, self.stdout, self.stderr):
            os.close(end)


class Child(Pipes):
    """A child process with its three pipes; `exited` is set when the process has ended and was reaped."""

    def __init__(
        self,
        command: Sequence[str],  # program and arguments
        *,
        env: Mapping[str, str],  # all environment variables of the child
        cwd: str | None = None,  # working directory; the host's own when None
        pass_fds: Sequence[int] = (),  # all descriptors that the child inherits besides 0, 1 and 2
    ) -> None:
        """Start the process.

        Raises:
          OSError: the process cannot be started.
        """
        super().__init__()
        try:
            stdin, stdout, stderr = self.given
            self._process = subprocess.Popen(  # noqa: S603 - commands are built here, nothing of a guest is in them
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=dict(env),
                cwd=cwd,
                pass_fds=pass_fds,
                close_fds=True,
                start_new_session=True,
            )
        except BaseException:
            self.close()
            raise
        finally:
            self.hand_over()
        self.exited = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError:  # this process has no free descriptors left
            self._process.kill()
            self._process.wait()
            self.close()
            raise
        self._loop.add_reader(self._pidfd, self._on_exit)

    @property
    def pid(self) -> int:
        """Return the child's process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return the child's exit code, or minus the signal that ended it. The result is None while the child runs."""
        return self._process.returncode

    def kill(self) -> None:
        """Send SIGKILL to the child, unless it has been reaped."""
        self._process.kill()

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self.exited.set()


class ForkedChild(Pipes):
    """A process that a template forked, with its three pipes."""

    def __init__(self) -> None:
        super().__init__()
        self.pid = 0  # process id on this machine
        self.pidfd = -1  # pidfd of the process; the object that takes it over must close it
        self.confined = False  # whether all isolation of the process is in place
        self.exited = asyncio.Event()  # set when the process has ended
        self.returncode: int | None = None  # exit code, or 128 + the signal that ended it; below 0 if its template died

    def kill(self) -> None:
        """Do nothing: `BubblewrapProcesses.kill` kills this process, and there is no wrapper to kill."""

    def ended(self, code: int) -> None:
        """Record how the process ended. `code` is its exit code, or minus its signal, stored as 128 + the signal."""
        self.returncode = code if code >= 0 else 128 - code
        self.exited.set()

    def lost(self) -> None:
        """Record that the process ended with its template."""
        self.returncode = -signal.SIGKILL
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
