"""The seam between the host and whatever isolates: a backend starts sandboxes, a link carries bytes to one.

Backends know nothing of evaluators; `sandbox.session` speaks the protocol over a link. That keeps a backend to one
question, "start this spec and tell me how it died", and lets one conformance suite run over all of them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from evaluator_host.model.evaluator import Environment, SandboxSpec
from evaluator_host.sandbox.exit_status import ExitStatus


class Link(Protocol):
    """The byte channel to one started sandbox, and the way to end it."""

    @property
    def id(self) -> str:
        """Name of the sandbox in logs and in the backend (cgroup, container)."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the runner is known to have ended with nothing left to read; costs nothing to ask."""
        ...

    def write(self, data: bytes) -> None:
        """Queue bytes for the runner; never blocks, and is silent when the sandbox is dead (`read` tells)."""
        ...

    async def drain(self) -> None:
        """Wait until the queue is short again; returns at once when the sandbox is dead."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes from the runner, at most 64 KiB; `b""` when it has ended."""
        ...

    def memory_events(self) -> int:
        """How often something in this sandbox was killed at the memory limit so far; 0 where nobody counts.

        Cheap (no engine round trip): asked after a row whose process was killed, to tell `memory_limit` from `crashed`.
        """
        ...

    async def destroy(self) -> ExitStatus:
        """Kill every process of the sandbox, remove all it had on the host, and say how it ended.

        Idempotent; a second call returns the same exit_status. When it returns, nothing is left: no process, mount,
        cgroup, container, file or descriptor. Never raises: what could not be removed is logged and swept later.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing `doctor` has to say about a backend: `ok`, what was looked at, and how to mend it when not ok."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Platform:
    """What programs run on in the sandboxes of a backend: Linux with glibc.

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
        """What its sandboxes run on. Until the engine of another machine has answered, this machine's processor."""
        ...

    def python_versions(self) -> tuple[str, ...]:
        """Return the minor versions that a spec may name, its own included; blocks for up to seconds the first time."""
        ...

    async def start(self, spec: SandboxSpec) -> Link:
        """Start an isolated runner for `spec` and return once the process exists; its `hello` comes over the link.

        Raises:
          SandboxUnavailable: this backend cannot start a sandbox on this machine now; the detail says what to do.
          SandboxLost: something killed it while it started; the caller may try again.
        """
        ...

    async def prepare(self, environment: Environment) -> None:
        """Make whatever sandboxes on an installed environment are started from, so that no `start` has to.

        Made once however many ask, and found again by later processes; costs next to nothing when it is there. A
        backend that shows a sandbox the folder itself makes nothing.

        Raises:
          SandboxUnavailable: it cannot be made: the engine does not answer, or the folder is gone.
        """
        ...

    async def compare(self, environment: Environment) -> list[str]:
        """Return the paths at which what `prepare` made differs from the folder; none when it made nothing.

        Reads every file of both, so it is for `packages verify` alone.

        Raises:
          SandboxUnavailable: the engine does not answer, or the folder is gone.
        """
        ...

    async def drop_environment(self, digest: str) -> None:
        """Forget what was made of an environment, because its files were replaced; sandboxes that run keep theirs.

        Idempotent. The next `prepare` or `start` makes it anew.

        Raises:
          SandboxUnavailable: the engine does not answer: what it has may be out of date.
        """
        ...

    async def prune_environments(self, live: Collection[str]) -> list[str]:
        """Remove what this host had made of environments that it has no more, but for what a sandbox runs on.

        Never raises: what cannot be removed now is removed the next time.

        Args:
          live: Digests of those it has.

        Returns:
          Names of what was removed.
        """
        ...

    async def findings(self) -> list[Finding]:
        """Say what works here and what does not: binary or engine, namespaces, limits, seccomp, runtimes."""
        ...

    async def sweep(self) -> int:
        """Remove what dead hosts left behind (cgroups, containers), never a live host's; returns how many."""
        ...

    async def close(self) -> None:
        """Release the backend's own resources; sandboxes are destroyed by whoever started them."""
        ...
