"""What is the same for every container of a host: its runtime, seccomp profile, Node flags and labels."""

import json
from functools import cached_property
from typing import Final

from evaluator_host.config.settings import RUNTIMES_DIR, SANDBOX_IMAGES_DIR
from evaluator_host.sandbox.docker.policy import ContainerPolicy, EngineFacts

_SECCOMP: Final = SANDBOX_IMAGES_DIR / "seccomp.json"
_NODE_FLAGS: Final = RUNTIMES_DIR / "javascript" / "node_flags.json"


class Policies:
    """Makes the policy of a container from what its engine can do.

    Args:
      runtime: OCI runtime, or None for the engine's default.
      labels: Of every container.
    """

    def __init__(self, *, runtime: str | None, labels: dict[str, str]) -> None:
        self._runtime = runtime
        self._labels = labels

    def policy(self, facts: EngineFacts, *, image: str) -> ContainerPolicy:
        """Return the policy of a container of an image."""
        return ContainerPolicy(
            image=image,
            runtime=self._runtime,
            seccomp=self._seccomp(facts),
            node_flags=self._node_flags,
            labels=self._labels,
        )

    def _seccomp(self, facts: EngineFacts) -> str | None:
        """Docker takes the profile itself, Podman the path of a file on its own machine."""
        if not facts.seccomp or not _SECCOMP.is_file():
            return None
        if facts.podman:
            return str(_SECCOMP) if facts.local else None
        return self._profile

    @cached_property
    def _profile(self) -> str:
        return json.dumps(json.loads(_SECCOMP.read_bytes()), separators=(",", ":"))

    @cached_property
    def _node_flags(self) -> tuple[str, ...]:
        return tuple(json.loads(_NODE_FLAGS.read_bytes())) if _NODE_FLAGS.is_file() else ()
