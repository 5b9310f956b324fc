"""The descriptors that one bubblewrap process inherits: arguments, filter, files of /etc, and how to talk to it."""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from evaluator_host.sandbox.bubblewrap.policy import Descriptors
from evaluator_host.sandbox.linux.child import readable

MEMORY_FILE: Final = "evaluator-host"  # what /proc shows of the files that bubblewrap inherits
_FIRST_PROCESS: Final = re.compile(rb'"child-pid":\s*(\d+)')


class InheritedFds:
    """Opened for one start and closed after it, whatever happened; `args` is only readable once.

    Attributes:
      descriptors: For `bubblewrap_args`.
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
        except BaseException:  # out of descriptors, half-way
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def all(self) -> tuple[int, ...]:
        """Every descriptor of the child."""
        return tuple(self._child)

    def args(self, arguments: Sequence[str]) -> int:
        """Return a descriptor from which bubblewrap reads its arguments.

        On its command line they would show paths of the host to whoever lists processes, inside the sandbox as well.
        """
        return self._filled(b"".join(argument.encode() + b"\0" for argument in arguments))

    def hand_over(self) -> None:
        """Close the child's ends once it has them: only then does its end close ours."""
        while self._child:
            os.close(self._child.pop())

    def _close(self) -> None:
        self.hand_over()
        while self._own:
            os.close(self._own.pop())

    async def first_process(self) -> int | None:
        """Wait until bubblewrap has made its namespaces and return the id of the first process in them.

        None when it ended without: it has then written why to its standard error.
        """
        data = b""
        while b"}" not in data:  # all of it: bubblewrap would be killed by SIGPIPE if we closed the pipe before
            await readable(self._info)
            more = os.read(self._info, 4096)
            if not more:
                return None
            data += more
        match = _FIRST_PROCESS.search(data)
        return None if match is None else int(match[1])

    def go(self) -> None:
        """Let bubblewrap start the runner."""
        with contextlib.suppress(BrokenPipeError):  # it has failed meanwhile; the link will tell
            os.write(self._go, b"\n")

    def _pipe(self, *, reads: bool) -> tuple[int, int]:
        """Return our end and the child's."""
        reader, writer = os.pipe()
        own, child = (reader, writer) if reads else (writer, reader)
        self._own.append(own)
        self._child.append(child)
        return own, child

    def _filled(self, content: bytes) -> int:
        descriptor = os.memfd_create(MEMORY_FILE, os.MFD_CLOEXEC)
        self._child.append(descriptor)
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor
