"""Forks Python sandboxes from a template, which takes half the processor time of a fresh start (docs/security.md).

A template is a process that has its own root file system and has imported the runner (`evaluator_runner/template.py`).
Each process that it forks makes the namespaces, mounts and limits of `policy.bubblewrap_args` for itself.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import re
import secrets
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.bubblewrap.descriptors import bubblewrap_words, memory_file
from evaluator_host.engine.sandbox.bubblewrap.policy import HostFiles, Identity, python_command, template_args
from evaluator_host.engine.sandbox.linux.child import Child, ForkedChild
from evaluator_host.engine.sandbox.linux.masked_paths import PROC_FOLDERS

_OPEN_TREE: Final = 428
_AT_FDCWD: Final = -100
_TREE_FLAGS: Final = 1 | 0x8000 | os.O_CLOEXEC  # flags to copy a mount, together with the mounts below it
_MESSAGE_BYTES: Final = 4096
_START_S: Final = 10.0
_PID: Final = re.compile(r"^Pid:\s*(\d+)", re.MULTILINE)


class TemplateLost(Exception):
    """A template failed to make a sandbox; without a template, bubblewrap may still be able to start one."""


class Template:
    """A started template process, which forks sandboxes on request (`evaluator_runner/template.py`).

    Args:
      bwrap: Path of bubblewrap.
      arguments: bubblewrap's arguments.
      command: Command line of the template; the number of its socket is appended.
      setup: Four bytes with the length of the JSON, then the JSON with the paths to mask in every sandbox, then the
        seccomp filter.

    Attributes:
      lost: Whether the template has ended.
      works: Whether the template has made a sandbox.
      silent: Whether the template has not answered a request, and has sent nothing since: it is stopped, or gets no
        processor time.
    """

    def __init__(self, bwrap: Path, arguments: Sequence[str], command: Sequence[str], *, setup: bytes) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # forked children, by the number of the request
        self._children: dict[bytes, tuple[ForkedChild, asyncio.Future[None]]] = {}
        # request numbers, by the descriptor with which the template refers to the child
        self._by_descriptor: dict[bytes, bytes] = {}
        self.lost = self.works = self.silent = False
        try:
            with theirs, os.fdopen(memory_file(bubblewrap_words(arguments)), "rb") as words:
                given = (words.fileno(), theirs.fileno())
                line = [str(bwrap), "--args", str(given[0]), "--", *command, str(given[1])]
                self._process = Child(line, env={}, pass_fds=given)
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)  # noqa: FBT003 - the method's only parameter
        asyncio.get_running_loop().add_reader(self._socket, self._on_message)
        self._socket.send(setup)

    async def fork(self, order: Mapping[str, object], folders: Sequence[Path]) -> ForkedChild:
        """Fork a new sandbox with all its limits, and return its first process.

        Args:
          order: The request: `disk_bytes`, the files of `/etc`, `rlimits`, the `own_user` of a user namespace or null,
            the paths at which to mount the folders as `mounts`, and the `arguments` of the runner.
          folders: The folders to mount at the paths in `mounts`.

        Raises:
          TemplateLost: the template failed to make a sandbox; without a template, bubblewrap may still be able to start
            one.
          OSError: this process has no free descriptor, or may not open a folder.
        """
        if self.silent:
            raise TemplateLost("the template process still does not answer")
        # random, because a counter would show a guest how many sandboxes the host starts
        number, child = secrets.token_hex(6).encode(), ForkedChild()
        answer = asyncio.get_running_loop().create_future()
        try:
            for folder in folders:
                child.given.append(_open_tree(folder))
            self._children[number] = child, answer
            request = number + bytes([len(child.given)]) + json.dumps(order).encode()
            socket.send_fds(self._socket, [request], child.given)
            async with asyncio.timeout(_START_S):
                await answer
            if child.pid == 0:  # the child has ended; the kernel would take process id 0 to mean this process
                raise TemplateLost("the new sandbox ended at once")
        except BaseException as error:
            child.close()
            answer.cancel()
            self._drop(child, number)
            self.silent |= isinstance(error, TimeoutError)
            if isinstance(error, TimeoutError | BlockingIOError | ConnectionError | TemplateLost):
                raise TemplateLost(
                    f"the template process did not start a sandbox: {str(error) or 'no answer'} {self._said()}"
                ) from error
            raise
        finally:
            child.hand_over()
        return child

    async def close(self) -> None:
        """End the template and all sandboxes that it made. Call this only once."""
        self._lose()
        await self._process.exited.wait()
        self._process.close()

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            return os.read(self._process.stderr, _MESSAGE_BYTES).decode("utf-8", "replace").strip()[-500:]
        return ""

    def _drop(self, child: ForkedChild, number: bytes) -> None:
        """Kill a sandbox that no caller needs any more, at once or as soon as its process id arrives."""
        if child.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
            os.close(child.pidfd)
            self._children.pop(number, None)

    def _on_message(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._lose()
            return
        self.silent = False
        kind, number, *rest = data.split(b" ", 2)
        if kind == b"S":
            self._by_descriptor[rest[0]] = number
        elif kind == b"E":
            number = self._by_descriptor.pop(number, b"")
        if number in self._children:
            self._on_answer(number, kind, rest, fds)

    def _on_answer(self, number: bytes, kind: bytes, rest: list[bytes], fds: list[int]) -> None:
        child, answer = self._children[number]
        if kind == b"S":
            if fds:  # the kernel sends no descriptors if this process has no free ones left
                child.pidfd, child.pid = fds[0], _pid_of(fds[0])
        elif kind == b"B":
            self.works = child.confined = True
        else:
            reason = rest[0].decode()
            if not answer.done():
                answer.set_exception(TemplateLost(reason))
            child.ended(int(reason) if kind == b"E" else 0)
            del self._children[number]
        if answer.cancelled() and kind == b"S":
            self._drop(child, number)
        elif not answer.done() and child.confined and child.pidfd >= 0:
            answer.set_result(None)

    def _lose(self) -> None:
        if self.lost:
            return
        self.lost = True
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._process.kill()
        for child, answer in self._children.values():
            if not answer.done():
                answer.set_exception(TemplateLost("it ended"))
            child.lost()


def start_template(bwrap: Path, host: HostFiles, *, identity: Identity, seccomp: bytes) -> Template:
    """Start a template for the Python interpreter of `host`; `seccomp` is the compiled filter for its sandboxes.

    Raises:
      OSError: the template cannot be started.
    """
    paths = [str(path) for path in host.masked_paths]
    setup = {
        "masked_files": [path for path in paths if path not in PROC_FOLDERS],
        "masked_folders": [path for path in paths if path in PROC_FOLDERS],
    }
    facts = json.dumps(setup).encode()
    command = [*python_command(host), "--template"]
    return Template(
        bwrap, template_args(host, identity), command, setup=len(facts).to_bytes(4, "big") + facts + seccomp
    )


def _pid_of(pidfd: int) -> int:
    found = _PID.search(Path(f"/proc/self/fdinfo/{pidfd}").read_text())
    return int(found[1]) if found is not None else 0


def _open_tree(folder: Path) -> int:
    """Copy the mount of a folder; return a descriptor with which another mount namespace can attach the copy."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(folder), _TREE_FLAGS)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    return fd
