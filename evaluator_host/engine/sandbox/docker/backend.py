"""Starts sandboxes as containers of a Docker or Podman engine, connected only by the attach stream."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Collection, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

import docker
import docker.errors
import requests

from evaluator_host.engine.sandbox.base import Finding, Platform, Weight
from evaluator_host.engine.sandbox.docker.attach import AttachFailed, Attachment, EngineAddress, attach
from evaluator_host.engine.sandbox.docker.cleanup import (
    LABEL_BOOT,
    LABEL_INSTANCE,
    ContainerExit,
    abandoned_containers,
    force_remove,
    remove_container,
)
from evaluator_host.engine.sandbox.docker.doctor import check_engine, refusal
from evaluator_host.engine.sandbox.docker.engine import (
    ENGINE_ERRORS,
    REQUEST_TIMEOUT_S,
    Engine,
    is_this_machine,
    unavailable,
)
from evaluator_host.engine.sandbox.docker.environment_images import EnvironmentImages
from evaluator_host.engine.sandbox.docker.image.recipe import image_platform
from evaluator_host.engine.sandbox.docker.oom_events import OomEvents, find_cgroup
from evaluator_host.engine.sandbox.docker.policy import UID_COUNT, UID_FIRST, EngineFacts, container_policy, create_body
from evaluator_host.engine.sandbox.docker.pulse import Pulse
from evaluator_host.engine.sandbox.exit_status import ExitStatus
from evaluator_host.engine.sandbox.linux.cgroups import MEMORY, Cgroup
from evaluator_host.engine.sandbox.linux.instance import boot_id
from evaluator_host.engine.sandbox.linux.rlimits import is_gvisor
from evaluator_host.engine.sandbox.linux.watchdog import read_text
from evaluator_host.engine.sandbox.linux.work_clock import Doing, Look, doing, look_at
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import SandboxLost, SandboxUnavailable
from evaluator_host.types.evaluator import Environment, SandboxSpec
from evaluator_host.types.json_texts import Octets

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_LOOK_S: Final = 5.0
# if an engine has not answered for this many seconds, it may not pass on what rows send, so their time stops
_SILENT_S: Final = 1.0
# if an engine has not answered for this many seconds, it hangs, so the host sends it no more requests
_HANGS_S: Final = 10.0
_REMOVED: Final = frozenset({404, 409})  # HTTP statuses of requests for a container that is gone, or is being removed


class DockerLink:
    """The byte channel to the runner in one container, as a `base.Link`."""

    def __init__(
        self,
        name: str,
        *,
        channel: Attachment,
        backend: "DockerBackend",
        cgroup: Cgroup | None,
        first_pid: int | None,
    ) -> None:
        self.first_pid = first_pid
        self._name = name
        self._channel = channel
        self._backend = backend
        self._cgroup = cgroup
        self._epoch = backend.events.epoch
        self._looked: Look | None = None
        self._ending: asyncio.Task[ExitStatus] | None = None

    @property
    def id(self) -> str:
        return self._name

    @property
    def ended(self) -> bool:
        """Return whether the container's output has ended and all of it was read."""
        return self._channel.inbox.ended

    def write(self, data: Octets) -> None:
        self._channel.write(data)

    async def drain(self) -> None:
        await self._channel.drain()

    async def read(self, *, patience_s: float = 0.0) -> bytes:  # noqa: ARG002 - part of the interface
        """Return the next bytes from the runner; `b""` when it has ended."""
        return await self._channel.inbox.read()

    def memory_events(self) -> int:
        """Return how many processes were killed at the memory limit, from the cgroup or the engine's events."""
        if self._cgroup is not None and self._cgroup.enforces(MEMORY):
            return self._cgroup.oom_kills()
        return self._backend.events.count(self._name)

    def used_bytes(self) -> int | None:
        """Return the bytes of memory that the container uses now, or None if the number is unknown."""
        return None if self._cgroup is None else self._cgroup.used_bytes()

    @property
    def far(self) -> bool:
        """Return whether the container's processes are visible only to the engine, not to this host."""
        return self.first_pid is None

    async def look(self) -> Look | None:
        """Return what the container's processes are doing, and their CPU time, or None if that is unknown.

        While the engine does not answer, they count as frozen: a row that seems to sleep may be waiting for the engine.
        """
        silent = self._backend.silent_s() > _SILENT_S
        if not (self.far and silent):
            self._looked = await self._backend.look(self._name) if self.far else look_at(self.first_pid)
        return replace(self._looked, doing=Doing.WANTS) if silent and self._looked else self._looked

    def weigh(self, weight: Weight) -> None:
        if self._cgroup is not None:
            self._cgroup.weigh(weight)

    async def destroy(self) -> ExitStatus:
        """Kill and remove the container, and return how it ended. Never raises."""
        if self._ending is None:
            self._ending = self._backend.run_to_end(self._destroy())
        return await asyncio.shield(self._ending)

    async def _destroy(self) -> ExitStatus:
        inbox = self._channel.inbox
        # read this now, because the cgroup is removed together with the container
        pids_hit = self._cgroup is not None and self._cgroup.forks_refused() > 0
        end = await self._backend.remove_container(self._name, output_ended=inbox.closed)
        await self._channel.close()
        oom_killed = self.memory_events() > 0 or bool(end and self._backend.ran_out_of_memory(end))
        absent = end is None or not end.found or self._backend.events.epoch != self._epoch
        exit_status = ExitStatus(
            exit_code=end.exit_code if end else None,
            signal=end.signal if end else None,
            oom_killed=oom_killed,
            pids_hit=pids_hit,
            # No process in a container can kill the container's process 1, so a program outside the container did.
            lost=absent or bool(end and end.was_killed and not oom_killed),
            stderr_tail=inbox.stderr_tail,
        )
        self._backend.events.forget(self._name)
        if self._cgroup is not None:
            self._cgroup.close()
        return exit_status


class DockerBackend:
    """Starts containers as sandboxes, as a `base.Backend`.

    Args:
      docker_host: Address of the engine, `unix://…` or `tcp://…`; None for the local one.
        `DOCKER_CERT_PATH` and `DOCKER_TLS_VERIFY` turn on TLS.
      runtime: OCI runtime for the containers, such as `runsc`; None for the engine's default.
      image: Runtime image, which `evaluator-host images build` made.
      instance: Name of this host process (`instance.this_instance`). After its death, a later host finds its containers
        by this name.
      owner: Label for images of this host's package sets. If hosts share an engine, each host removes only images with
        its label.
      data_bytes: Maximum size in bytes of all copies of data files on the engine (see `EnvironmentImages`).

    Raises:
      Misconfigured: `docker_host` is an `ssh://` address.
    """

    name = "docker"

    def __init__(
        self,
        *,
        docker_host: str | None,
        runtime: str | None,
        image: str,
        instance: str,
        owner: str = "",
        data_bytes: int = 0,
        python_with_node: bool = False,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._python_with_node = python_with_node
        self._engine = Engine(docker_host)
        self._runtime = runtime
        self._image = image
        self._images = EnvironmentImages(self._engine, image=image, owner=owner, data_bytes=data_bytes)
        self._labels = {LABEL_INSTANCE: instance, LABEL_BOOT: boot_id()}
        self._unremoved: set[str] = set()  # containers that the engine could not remove yet
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pulse = Pulse()
        self._endpoint: EngineAddress | None = None  # None until the first container is attached
        self._supervisor = supervisor or Supervisor()
        self._supervisor.checks.append(self._check)
        self.events = OomEvents(f"{LABEL_INSTANCE}={instance}", self._supervisor)

    @property
    def platform(self) -> Platform:
        """Return the versions of Python, Node and glibc in the image, and the engine's processor type."""
        return image_platform(self._engine.machine)

    def silent_s(self) -> float:
        """Return for how many seconds the engine has not answered; 0 if it answers. Never wait."""
        return 0.0 if self._endpoint is None else self._pulse.silent_s(self._endpoint)

    def python_versions(self) -> tuple[str, ...]:
        """Return only the image's own Python version."""
        return (self.platform.python,)

    async def start(self, spec: SandboxSpec) -> DockerLink:
        """Create a container, attach to it, start it and return its link.

        Raises:
          SandboxUnavailable: there is no engine, permission or image, or the engine refused the request.
          SandboxLost: something removed the container while it started.
          OverQuota: the data files are over the limit of the engine.
        """
        starting = self.run_to_end(self._start(spec))
        try:
            link = await self._translated(self._unless_engine_hangs(starting))
        except BaseException:
            starting.add_done_callback(self._destroy_unclaimed)
            raise
        self._retry_removals()
        return link

    async def prepare(self, environment: Environment) -> None:
        await self._translated(self._images.image_for(environment))

    async def compare(self, environment: Environment) -> list[str]:
        """Return the paths at which the image of a package set differs from its folder."""
        return await self._translated(self._images.compare(environment))

    async def drop_environment(self, digest: str) -> None:
        """Forget the image of a package set, because its files were replaced; running sandboxes keep the image."""
        await self._translated(self._images.drop(digest))

    async def prune_environments(self, live: Collection[str]) -> list[str]:
        """Remove this host's images of all environments except those in `live` (digests); return the images' names."""
        try:
            return await self._images.prune(live)
        except ENGINE_ERRORS as error:
            _LOG.warning("cannot remove images of environments: %s", error)
            return []

    async def _translated(self, request: Awaitable[T]) -> T:
        """Return the result of a request; turn each of `ENGINE_ERRORS` into SandboxUnavailable."""
        try:
            return await request
        except ENGINE_ERRORS as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> SandboxUnavailable:
        return unavailable(error, address=self._engine.address, image=self._image)

    async def findings(self) -> list[Finding]:
        """Check the engine, image and isolation; return the findings for `doctor`."""
        return await check_engine(self._engine, image=self._image, runtime=self._runtime, start=self.start)

    async def sweep(self) -> int:
        """Remove containers of dead hosts, and containers that this host failed to remove earlier; return how many."""
        try:
            facts = await self._engine.facts()
            found = set(await self._engine.run(abandoned_containers, local=is_this_machine(facts))) | self._unremoved
            gone = await asyncio.gather(*(self._force_remove(container) for container in found))
        except ENGINE_ERRORS as error:
            _LOG.warning("cannot look for leftover containers: %s", error)
            return 0
        return sum(gone)

    async def close(self) -> None:
        """Wait for running removals, then close every connection."""
        with suppress(ValueError):  # raised if it is closed already
            self._supervisor.checks.remove(self._check)
        self._images.stop()
        self._retry_removals()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._images.close()
        await self.events.stop()
        await self._pulse.stop()
        await self._engine.close()

    async def remove_container(self, container: str, *, output_ended: bool) -> ContainerExit | None:
        """Remove a container and return how it ended; return None if the engine does not answer. Never raise."""
        try:
            self._require_answers()
            end = await self._engine.run(remove_container, container, output_ended=output_ended)
        except ENGINE_ERRORS as error:
            _LOG.warning(
                "container %s was not removed, and stays until the host next looks for leftovers: %s", container, error
            )
            self._unremoved.add(container)
            return None
        if not end.gone:
            _LOG.warning(
                "container %s stays until the host next looks for leftovers: the engine does not remove it", container
            )
            self._unremoved.add(container)
        return end

    async def look(self, container: str) -> Look | None:
        """Ask the engine for a container's state and CPU time; return None if the engine does not answer soon."""
        try:
            async with asyncio.timeout(_LOOK_S):
                return await self._engine.run(_look, container)
        except (*ENGINE_ERRORS, KeyError, ValueError):  # the engine has no `ps`, or its `ps` lists no threads
            return None

    def ran_out_of_memory(self, end: ContainerExit) -> bool:
        """Return whether a container ended at its memory limit, according to the engine.

        With gVisor, the answer is yes for every container that SIGKILL ended: a guest cannot kill gVisor's kernel, but
        the host's kernel kills it at the memory limit. The cgroup that counts kills is often removed before anybody
        can read it.
        """
        return end.oom_killed or (end.was_killed and is_gvisor(self._runtime))

    def run_to_end(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start and return a task that continues even if its caller is cancelled; `close` waits for such tasks."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _start(self, spec: SandboxSpec) -> DockerLink:
        self._require_answers()
        name = f"evaluator-host-{secrets.token_hex(8)}"
        facts = await self._engine.facts()
        if (reason := refusal(facts, self._runtime)) is not None:
            raise SandboxUnavailable(reason)
        uid = UID_FIRST + secrets.randbelow(UID_COUNT)
        try:
            container = await self._create(name, spec, facts=facts, uid=uid)
        except docker.errors.ImageNotFound:  # another process has removed the image since the look-up
            container = await self._create(name, spec, facts=facts, uid=uid)
        channel: Attachment | None = None
        try:
            channel = await self._attach(container)
            first_pid = await self._engine.run(_launch, container, local=facts.local)
        except BaseException as error:
            if channel is not None:
                await channel.close()
            await self.remove_container(name, output_ended=False)
            if _was_removed(error):
                raise SandboxLost("something removed a container while it started; try again") from error
            raise
        cgroup = None if first_pid is None else find_cgroup(first_pid, container)
        return DockerLink(name, channel=channel, backend=self, cgroup=cgroup, first_pid=first_pid)

    async def _unless_engine_hangs(self, starting: asyncio.Task[DockerLink]) -> DockerLink:
        """Wait for a container as long as the engine answers other requests."""
        while not starting.done():
            self._require_answers()
            await asyncio.wait({starting}, timeout=_SILENT_S)
        return starting.result()

    def _check(self) -> None:
        """Raise SandboxUnavailable if the engine hangs, even if sandboxes that started earlier are ready."""
        try:
            self._require_answers()
        except TimeoutError as error:
            raise self._unavailable(error) from error

    def _require_answers(self) -> None:
        if (silent_s := self.silent_s()) > _HANGS_S:
            raise TimeoutError(f"no answer for {silent_s:.0f} s")

    async def _create(self, name: str, spec: SandboxSpec, *, facts: EngineFacts, uid: int) -> str:
        image = await self._images.image_for(spec.environment, spec.data)
        policy = container_policy(
            facts,
            image=image,
            runtime=self._runtime,
            labels=self._labels,
            python_with_node=self._python_with_node,
        )
        body = create_body(spec, policy=policy, engine=facts, uid=uid)
        try:
            return await self._engine.run(_create, body, name)
        except docker.errors.APIError:
            raise  # the engine refused the request
        except requests.RequestException:
            # the connection broke, perhaps after the engine had created the container
            await self.remove_container(name, output_ended=False)
            raise

    async def _attach(self, container: str) -> Attachment:
        endpoint, api_version = await self._engine.endpoint()
        self._endpoint = endpoint
        self.events.start(endpoint, api_version)
        return await attach(endpoint, container, api_version=api_version, timeout_s=REQUEST_TIMEOUT_S)

    def _destroy_unclaimed(self, starting: asyncio.Task[DockerLink]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            _ = self.run_to_end(starting.result().destroy())

    def _retry_removals(self) -> None:
        for container in self._unremoved:
            _ = self.run_to_end(self._force_remove(container))

    async def _force_remove(self, container: str) -> bool:
        try:
            self._require_answers()
            gone = await self._engine.run(force_remove, container)
        except ENGINE_ERRORS as error:
            _LOG.warning("container %s cannot be removed: %s", container, error)
            return False
        if gone:
            self._unremoved.discard(container)
        return gone


def _create(client: docker.APIClient, body: dict[str, Any], name: str) -> str:
    return str(client.create_container_from_config(body, name)["Id"])  # type: ignore[no-untyped-call]


def _look(client: docker.APIClient, container: str) -> Look:
    """Return the CPU time of a container, and what its threads are doing according to `ps` on the engine's machine."""
    used_ns = client.stats(container, stream=False, one_shot=True)["cpu_stats"]["cpu_usage"]["total_usage"]
    listed = client.top(container, ps_args="-eLo pid,stat")
    states = {line[listed["Titles"].index("STAT")][0] for line in listed["Processes"]}
    return Look(doing(states), used_ns / 1e9)


def _was_removed(error: BaseException) -> bool:
    if isinstance(error, AttachFailed):
        return error.status in _REMOVED
    return isinstance(error, docker.errors.APIError) and error.status_code in _REMOVED


def _launch(client: docker.APIClient, container: str, *, local: bool) -> int | None:
    client.start(container)
    pid = int(client.inspect_container(container)["State"]["Pid"]) if local else 0
    return pid if pid and container in read_text(f"/proc/{pid}/cgroup") else None
