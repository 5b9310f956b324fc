"""Removes containers of this host and of dead hosts, never containers of other living hosts."""

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import docker
import docker.errors

from evaluator_host.engine.sandbox.linux.instance import boot_id, is_dead

LABEL_INSTANCE: Final = "evaluator-host.instance"
LABEL_BOOT: Final = "evaluator-host.boot"

# how long to wait for an exit, in seconds; an engine notices an exit milliseconds after the output has ended
_EXIT_S: Final = 1.0
# how long to try to remove a container, in seconds; a later sweep removes what a busy engine could not remove
_REMOVE_S: Final = 10.0
_POLL_S: Final = 0.01
# exit codes that runc and Docker report for a process that a signal ended: 128 + the signal's number
_SIGNALS: Final = range(129, 160)
# a container that ended this long ago, but still exists, no longer has a living host
_ORPHAN_AGE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """How a container ended, as the engine reported before the container was removed."""

    found: bool = False  # whether the engine still had the container
    ended: bool = False  # whether the container had ended before this host removed it
    exit_code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    gone: bool = True  # whether the container no longer exists

    @property
    def was_killed(self) -> bool:
        """Return whether SIGKILL had ended the container before this host removed it."""
        return self.ended and self.signal == signal.SIGKILL


def remove_container(client: docker.APIClient, container: str, *, output_ended: bool) -> ContainerExit:
    """Kill and remove a container, and return how it ended. Blocking. Raises `ENGINE_ERRORS`.

    If `output_ended`, the container is about to exit, so this function waits up to a second for the exit code before it
    kills the container.
    """
    state = _final_state(client, container, wait_s=_EXIT_S if output_ended else 0.0)
    gone = force_remove(client, container)
    if state is None:
        return ContainerExit(gone=gone)
    oom_killed = bool(state.get("OOMKilled"))
    if state.get("Running"):
        return ContainerExit(found=True, signal=9, oom_killed=oom_killed, gone=gone)
    code = int(state.get("ExitCode", 0))
    by_signal = code - 128 if code in _SIGNALS else None
    return ContainerExit(
        found=True,
        ended=True,
        exit_code=None if by_signal else code,
        signal=by_signal,
        oom_killed=oom_killed,
        gone=gone,
    )


def force_remove(client: docker.APIClient, container: str) -> bool:
    """Kill and remove a container; return whether this worked within 10 seconds. Blocking. Raises `ENGINE_ERRORS`."""
    deadline = time.monotonic() + _REMOVE_S
    while time.monotonic() < deadline:
        try:
            client.remove_container(container, force=True, v=True)
        except docker.errors.NotFound:
            return True
        except docker.errors.APIError:  # try again: the container may be in removal already, or a mount may be busy
            time.sleep(_POLL_S)
    return False


def abandoned_containers(client: docker.APIClient, *, local: bool) -> list[str]:
    """Return the ids of containers that belong to dead hosts. Blocking. Raises `ENGINE_ERRORS`.

    `local` says whether the engine runs on this machine.
    """
    found = client.containers(all=True, filters={"label": [LABEL_INSTANCE]})
    return [item["Id"] for item in found if _is_abandoned(client, item, local=local)]


def owner_is_dead(labels: Mapping[str, str], *, boot: str, local: bool) -> bool:
    """Return whether a container's labels prove that its host process has ended.

    The labels have a boot id, and name the process of the host. If the boot id is `boot`, that of this machine, this
    function looks for the process. If the boot ids differ and the engine is `local`, the machine has been restarted, so
    the host has ended. A remote engine may serve hosts on several machines, so a different boot id proves nothing
    there.
    """
    if labels.get(LABEL_BOOT) == boot:
        return is_dead(labels.get(LABEL_INSTANCE, ""))
    return local and bool(boot)


def ended_long_ago(state: Mapping[str, Any], *, created: str, now: datetime) -> bool:
    """Return whether a container ended too long ago for a living host to use it.

    A container that never started counts as ended when it was created.

    When a host dies, its runners reach the end of their input and exit. But process ids mean nothing in another pid
    namespace or on another machine, so this check finds the containers of hosts there.
    """
    if state.get("Running"):
        return False
    finished = str(state.get("FinishedAt") or "")
    at = created if finished.startswith("0001") or not finished else finished
    return now - datetime.fromisoformat(at[:19]).replace(tzinfo=UTC) > _ORPHAN_AGE


def _is_abandoned(client: docker.APIClient, item: Mapping[str, Any], *, local: bool) -> bool:
    if owner_is_dead(item.get("Labels") or {}, boot=boot_id(), local=local):
        return True
    if item.get("State") == "running":
        return False
    try:
        container = client.inspect_container(item["Id"])
    except docker.errors.NotFound:
        return False
    return ended_long_ago(container["State"], created=container["Created"], now=datetime.now(UTC))


def _final_state(client: docker.APIClient, container: str, *, wait_s: float) -> dict[str, Any] | None:
    """Wait at most `wait_s` seconds for a container to end. Return its state, or None if there is no such container."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            state: dict[str, Any] = client.inspect_container(container)["State"]
        except docker.errors.NotFound:
            return None
        if not state.get("Running") or time.monotonic() >= deadline:
            return state
        time.sleep(_POLL_S)
