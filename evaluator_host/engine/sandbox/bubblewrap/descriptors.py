"""The file descriptors that a bubblewrap process inherits: arguments, seccomp filter, files of /etc, two pipes."""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Final, Self

from evaluator_host.engine.sandbox.bubblewrap.policy import Descriptors
from evaluator_host.engine.sandbox.linux.child import readable

MEMORY_FILE: Final = "evaluator-host"  # name of the inherited files in /proc
_FIRST_PROCESS: Final = re.compile(rb'"child-pid":\s*(\d+)')


class InheritedFds:
    """Context manager that opens the descriptors for one start of bubblewrap, and closes them at the end.

    Args:
      seccomp: The compiled seccomp filter.
      files: Contents of the sandbox's files in /etc, by name.

    Attributes:
      descriptors: Numbers of the open descriptors, as `bubblewrap_args` expects them.
    """

    def __init__(self, *, seccomp: bytes, files: Mapping[str, bytes]) -> None:
        self._child: list[int] = []
        self._own: list[int] = []
        try:
            self._info, info = self._pipe(reads=True)
            self._go, block = self._pipe(reads=False)
            os.set_blocking(self._info, False)
            self.descriptors = Descriptors(
                seccomp=self._filled(seccomp),
                info=info,
                block=block,
                files={name: self._filled(content) for name, content in files.items()},
            )
        except BaseException:  # if opening one descriptor fails, close those that are open
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def child_fds(self) -> tuple[int, ...]:
        """Return every descriptor that the child process must inherit."""
        return tuple(self._child)

    def args(self, arguments: Sequence[str]) -> int:
        """Return a descriptor from which bubblewrap can read `arguments` once (`--args`).

        On the command line, the arguments would show paths of the host to everybody who can list processes, guests
        included.
        """
        return self._filled(bubblewrap_words(arguments))

    def hand_over(self) -> None:
        """Close our copies of the child's descriptors, so that we notice when the child closes its own."""
        while self._child:
            os.close(self._child.pop())

    def _close(self) -> None:
        self.hand_over()
        while self._own:
            os.close(self._own.pop())

    async def first_process(self) -> int | None:
        """Wait for the first process in bubblewrap's namespaces, and return its process id.

        The result is None if bubblewrap failed; its standard error then contains the reason.
        """
        data = b""
        # read the whole JSON object: if we closed the pipe earlier, SIGPIPE would kill bubblewrap
        while b"}" not in data:
            await readable(self._info)
            more = os.read(self._info, 4096)
            if not more:
                return None
            data += more
        match = _FIRST_PROCESS.search(data)
        return None if match is None else int(match[1])

    def go(self) -> None:
        """Let bubblewrap start the runner. Until this call, bubblewrap waits in the finished sandbox."""
        with contextlib.suppress(BrokenPipeError):  # bubblewrap has already failed; the link reports this
            os.write(self._go, b"\n")

    def _pipe(self, *, reads: bool) -> tuple[int, int]:
        """Make a pipe; return our end and the child's end. `reads` says whether we read and the child writes."""
        reader, writer = os.pipe()
        own, child = (reader, writer) if reads else (writer, reader)
        self._own.append(own)
        self._child.append(child)
        return own, child

    def _filled(self, content: bytes) -> int:
        self._child.append(memory_file(content))
        return self._child[-1]


def bubblewrap_words(arguments: Sequence[str]) -> bytes:
    """Return arguments as bubblewrap reads them from the descriptor of `--args`: each ends with a zero byte."""
    return b"".join(argument.encode() + b"\0" for argument in arguments)


def memory_file(content: bytes) -> int:
    """Return a descriptor of a new file in memory with this content, positioned at its start."""
    descriptor = os.memfd_create(MEMORY_FILE, os.MFD_CLOEXEC)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
