"""Interfaces of sandbox technologies: a backend starts sandboxes, and a link carries bytes to and from a sandbox.

A backend only starts a sandbox from its spec, and reports how the sandbox ended. A backend does not depend on
evaluators: `sandbox.session` speaks the protocol over a link. So the same tests (tests/contract/test_conformance.py)
can check all backends.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from evaluator_host.engine.sandbox.exit_status import ExitStatus
from evaluator_host.engine.sandbox.linux.work_clock import Look
from evaluator_host.types.evaluator import Environment, SandboxSpec
from evaluator_host.types.json_texts import Octets


class Weight(float, Enum):
    """CPU weight of a sandbox: how much of a busy processor it gets, relative to the host's other sandboxes."""

    USUAL = 1.0
    LONG = 0.125  # the row has computed for a while; many such rows must not delay short rows
    # the row waits for an answer from outside; even many of these rows, which compute only now and then, barely slow
    # down a long row
    WAITS = 0.005


class ConnectionWriter(Protocol):
    """Sends bytes from the host to the network connections that a row has opened."""

    def reply(self, connection: int, data: bytes, *, end: bool = False) -> None:
        """Queue bytes for a connection without blocking; `end` closes it. Do nothing if the connection is closed."""
        ...

    async def drain(self) -> None:
        """Wait until less than 1 MiB is queued."""
        ...


class Gate(Protocol):
    """The host's end of the connections that one row makes to its loopback address (runtimes/PROTOCOL.md, `bytes`)."""

    most_wait_s: float
    """Maximum number of seconds to which `waited_s` may grow."""

    @property
    def waited_s(self) -> float:
        """Return how many seconds the row has waited for the host, which do not count towards the row's time limit."""
        ...

    def open(self, wire: ConnectionWriter) -> None:
        """Serve the row's connections over `wire`; this is called again if the row is retried in another sandbox."""
        ...

    def receive(self, connection: int, data: bytes, *, end: bool) -> None:
        """Handle bytes from the guest, which are not trusted; `end` means that the guest closed the connection."""
        ...

    def close(self) -> None:
        """End every connection and request, because the row has an outcome; serve nothing until the next `open`."""
        ...


class Link(Protocol):
    """The byte channel to a running sandbox; a link can also end the sandbox."""

    @property
    def id(self) -> str:
        """Return the name of the sandbox in logs and in the backend (cgroup, container)."""
        ...

    @property
    def ended(self) -> bool:
        """Return without waiting whether the runner is known to have ended and all its output has been read."""
        ...

    @property
    def first_pid(self) -> int | None:
        """Return the process id that the sandbox's first process has on this machine; None if it is not visible here.

        All other processes of the sandbox descend from this process.
        """
        ...

    def write(self, data: Octets) -> None:
        """Queue bytes for the runner without blocking. Do nothing if the sandbox is dead; `read` reports that.

        Args:
          data: Any number of bytes; call `drain` after more than 1 MiB.
        """
        ...

    async def drain(self) -> None:
        """Wait until less than 1 MiB is queued; return at once if the sandbox is dead."""
        ...

    async def read(self, *, patience_s: float = 0.0) -> bytes:
        """Return the next bytes from the runner, at most 256 KiB, or `b""` when the runner has ended.

        If there are no bytes yet, a link may wait for `patience_s` before it looks again, so that more bytes arrive
        together.
        """
        ...

    def memory_events(self) -> int:
        """Return how many processes were killed at the sandbox's memory limit, or 0 if nothing counts the kills.

        This takes microseconds and does not send a request to an engine. The session calls it after each row whose
        process was killed, to distinguish `memory_limit` from `crashed`.
        """
        ...

    def used_bytes(self) -> int | None:
        """Return the memory that the sandbox uses now, in bytes, including files in memory. None means unknown.

        With a cgroup this takes microseconds. The pool calls it once a second for each idle sandbox.
        """
        ...

    @property
    def far(self) -> bool:
        """Return whether the sandbox runs on another machine, so that `look` has to send a request there."""
        ...

    async def look(self) -> Look | None:
        """Return whether the sandbox's processes sleep, compute or are stopped, and how much CPU time they have used.

        The result is None if the state is unknown.
        """
        ...

    def weigh(self, weight: Weight) -> None:
        """Set how much of the processor the sandbox gets while other sandboxes compute too.

        This takes microseconds, and does nothing if the sandbox has no cgroup that this host may write.
        """
        ...

    async def destroy(self) -> ExitStatus:
        """Kill every process of the sandbox, remove all its traces from the host, and return how it ended.

        Never raise; return the same exit status on a second call. Afterwards no process, mount, cgroup, container, file
        or descriptor is left. If something cannot be removed, log this; a later `Backend.sweep` removes it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a `doctor` check.

    Attributes:
      name: Name of the thing that was checked.
      ok: Whether it works.
      detail: What was found.
      fix: What to do about it; None when there is nothing to do.
    """

    name: str
    ok: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Platform:
    """The platform inside a backend's sandboxes: Linux with glibc.

    Attributes:
      python: Minor version of the backend's own interpreter: `3.13`.
      machine: `x86_64` or `aarch64`.
      glibc: Version of the C library: `(2, 41)`.
      node: Major version of Node: `24`.
    """

    python: str
    machine: str
    glibc: tuple[int, int]
    node: str = "24"


class Backend(Protocol):
    """Starts sandboxes of one kind.

    Implementations: `BubblewrapBackend`, `DockerBackend`, `UnsandboxedBackend`. Each is bound to one event loop.
    """

    name: str

    @property
    def platform(self) -> Platform:
        """Return the platform inside the sandboxes.

        Until a remote engine has answered, `machine` is the processor type of this machine.
        """
        ...

    def python_versions(self) -> tuple[str, ...]:
        """Return the minor Python versions that a spec may name, the default included; the first call may take long."""
        ...

    async def start(self, spec: SandboxSpec) -> Link:
        """Start an isolated runner, and return its link as soon as the process exists; the runner then sends `hello`.

        Args:
          spec: Language, environment, and the limits: memory and disk in MB, and the number of processes.

        Raises:
          SandboxUnavailable: the backend cannot start a sandbox on this machine now; the detail says what to do.
          SandboxLost: something killed the sandbox while it started; the caller may try again.
        """
        ...

    async def prepare(self, environment: Environment) -> None:
        """Build the image that sandboxes on an installed environment need, so that `start` need not wait for it.

        Concurrent calls build the image only once, and later processes find it again. Do nothing if sandboxes of this
        backend read the environment's folder directly.

        Args:
          environment: An installed environment.

        Raises:
          SandboxUnavailable: the engine does not answer, or the environment's folder is gone.
        """
        ...

    async def compare(self, environment: Environment) -> list[str]:
        """Return the paths at which the image that `prepare` built differs from the environment's folder.

        If there is no such image, return no paths. Only `packages verify` calls this, because it reads every file of
        the image and of the folder.

        Args:
          environment: An installed environment.

        Raises:
          SandboxUnavailable: the engine does not answer, or the folder is gone.
        """
        ...

    async def drop_environment(self, digest: str) -> None:
        """Forget the image that `prepare` built, because the environment's files were replaced.

        Running sandboxes keep the old image. The next `prepare` or `start` builds the image again. If there is no such
        image, nothing happens.

        Args:
          digest: `sha256:…` of the environment.

        Raises:
          SandboxUnavailable: the engine does not answer, and may still have the old files.
        """
        ...

    async def prune_environments(self, live: Collection[str]) -> list[str]:
        """Remove the images that `prepare` built for environments that this host no longer has.

        Images of running sandboxes stay. This method never raises an error: the next call removes what this call could
        not remove.

        Args:
          live: Digests of the environments that the host has.

        Returns:
          Names of the removed images.
        """
        ...

    async def findings(self) -> list[Finding]:
        """Return `doctor`'s findings on the backend: program or engine, namespaces, limits, seccomp and runtimes."""
        ...

    async def sweep(self) -> int:
        """Remove cgroups or containers of dead hosts, but not of living hosts; return how many were removed."""
        ...

    async def close(self) -> None:
        """Release the backend's own resources. All sandboxes must have been destroyed before."""
        ...
