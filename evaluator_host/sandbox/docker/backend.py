"""Starts sandboxes as containers of a Docker engine (or Podman's), with the attach stream as their only channel."""

import asyncio
import logging
import secrets
import signal
from collections.abc import Awaitable, Collection, Coroutine
from typing import Any, Final, TypeVar

import docker
import docker.errors
import requests

from evaluator_host.model.errors import SandboxUnavailable
from evaluator_host.model.evaluator import Environment, SandboxSpec
from evaluator_host.sandbox.base import Finding, Platform
from evaluator_host.sandbox.docker.attach import Channel, attach
from evaluator_host.sandbox.docker.cleanup import LABEL_BOOT, LABEL_INSTANCE, Remains, abandoned, boot_id, bury, remove
from evaluator_host.sandbox.docker.doctor import check_engine, refusal
from evaluator_host.sandbox.docker.engine import ENGINE_ERRORS, REQUEST_TIMEOUT_S, Engine, unavailable
from evaluator_host.sandbox.docker.environment_images import EnvironmentImages
from evaluator_host.sandbox.docker.image.recipe import image_platform
from evaluator_host.sandbox.docker.oom_events import Counter, OomEvents, find_counters
from evaluator_host.sandbox.docker.policies import Policies
from evaluator_host.sandbox.docker.policy import UID_COUNT, UID_FIRST, EngineFacts, create_body
from evaluator_host.sandbox.docker.ssh import SshChannel, open_channel
from evaluator_host.sandbox.exit_status import ExitStatus
from evaluator_host.sandbox.linux.overhead import is_gvisor

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)


class DockerLink:
    """One container. See `base.Link`."""

    def __init__(
        self, name: str, *, channel: Channel, backend: "DockerBackend", counters: tuple[Counter | None, Counter | None]
    ) -> None:
        self._name = name
        self._channel = channel
        self._backend = backend
        self._memory, self._forks = counters
        self._epoch = backend.events.epoch
        self._fate: asyncio.Task[ExitStatus] | None = None

    @property
    def id(self) -> str:
        """The container's name."""
        return self._name

    @property
    def ended(self) -> bool:
        """Whether its output is over and read."""
        return self._channel.inbox.ended

    def write(self, data: bytes) -> None:
        """Queue bytes for the runner."""
        self._channel.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short again."""
        await self._channel.drain()

    async def read(self) -> bytes:
        """Return the next bytes from the runner; `b""` when it has ended."""
        return await self._channel.inbox.read()

    def memory_events(self) -> int:
        """How often something in the container was killed at its memory limit; see `docker_counts` for who counts."""
        return self._memory.read() if self._memory else self._backend.events.count(self._name)

    async def destroy(self) -> ExitStatus:
        """Kill and remove the container; see `base.Link`."""
        if self._fate is None:
            self._fate = self._backend.keep(self._destroy())
        return await asyncio.shield(self._fate)

    async def _destroy(self) -> ExitStatus:
        inbox = self._channel.inbox
        refused = (
            self._forks is not None and self._forks.read() > 0
        )  # of a runner that ended, its cgroup is gone already
        remains = await self._backend.bury(self._name, output_ended=inbox.closed)
        await self._channel.close()
        exit_status = ExitStatus(
            exit_code=remains.exit_code if remains else None,
            signal=remains.signal if remains else None,
            oom_killed=self.memory_events() > 0 or bool(remains and self._backend.ran_out_of_memory(remains)),
            pids_hit=refused,
            lost=remains is None or not remains.found or self._backend.events.epoch != self._epoch,
            stderr_tail=inbox.stderr_tail,
        )
        self._backend.events.forget(self._name)
        for counter in (self._memory, self._forks):
            if counter is not None:
                counter.close()
        return exit_status


class DockerBackend:
    """Containers as sandboxes. See `base.Backend`.

    Args:
      docker_host: Address of the engine (unix, tcp, or ssh, which needs paramiko: `docker_ssh`; TLS by docker-py's own
        variables); None for the local one.
      runtime: OCI runtime of the containers, or None for the engine's default.
      image: Runtime image, as `evaluator-host images build` made it.
      instance: Name of this host process (`sandbox.instance`), by which a later one sweeps after it.
      owner: Name of this host's package sets, by which it prunes its own images alone on an engine of several hosts.
    """

    name = "docker"

    def __init__(
        self, *, docker_host: str | None, runtime: str | None, image: str, instance: str, owner: str = ""
    ) -> None:
        self._engine = Engine(docker_host)
        self._runtime = runtime
        self._image = image
        self._layers = EnvironmentImages(self._engine, image=image, owner=owner)
        self._policies = Policies(runtime=runtime, labels={LABEL_INSTANCE: instance, LABEL_BOOT: boot_id()})
        self._owed: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.events = OomEvents(f"{LABEL_INSTANCE}={instance}")

    @property
    def platform(self) -> Platform:
        """What containers run on: the image's programs, on the engine's processor; see `base.Backend`."""
        return image_platform(self._engine.machine)

    def python_versions(self) -> tuple[str, ...]:
        """Return the image's own Python alone; see `base.Backend`."""
        return (self.platform.python,)

    async def start(self, spec: SandboxSpec) -> DockerLink:
        """Create, attach to and start a container; see `base.Backend`.

        Raises:
          SandboxUnavailable: there is no engine, no permission, no image, or the engine refused.
        """
        making = self.keep(self._make(spec))
        try:
            link = await self._asked(asyncio.shield(making))
        except asyncio.CancelledError:
            making.add_done_callback(self._unwanted)
            raise
        self._pay_debts()
        return link

    async def prepare(self, environment: Environment) -> None:
        """Make the image of a package set, in two requests when it is there; see `base.Backend`."""
        await self._asked(self._layers.image_for(environment))

    async def compare(self, environment: Environment) -> list[str]:
        """Return the paths at which the image of a package set differs from its folder; see `base.Backend`."""
        return await self._asked(self._layers.compare(environment))

    async def drop_environment(self, digest: str) -> None:
        """Forget the image of a package set; see `base.Backend`."""
        await self._asked(self._layers.drop(digest))

    async def prune_environments(self, live: Collection[str]) -> list[str]:
        """Remove the images of environments of this host that are not in `live`; see `base.Backend`."""
        try:
            return await self._layers.prune(live)
        except ENGINE_ERRORS as error:
            _LOG.warning("cannot remove images of environments: %s", error)
            return []

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except ENGINE_ERRORS as error:
            raise unavailable(error, address=self._engine.address, image=self._image) from error

    async def findings(self) -> list[Finding]:
        """Say what works here; see `base.Backend`."""
        return await check_engine(self._engine, image=self._image, runtime=self._runtime, start=self.start)

    async def sweep(self) -> int:
        """Remove the containers of dead hosts, and those of ours that an absent engine could not remove before."""
        try:
            facts = await self._engine.facts()
            found = set(await self._engine.run(abandoned, local=facts.local)) | self._owed
            gone = await asyncio.gather(*(self._clear(container) for container in found))
        except ENGINE_ERRORS as error:
            _LOG.warning("cannot look for leftover containers: %s", error)
            return 0
        return sum(gone)

    async def close(self) -> None:
        """Wait for removals under way, then close every connection."""
        self._layers.stop()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._layers.close()
        await self.events.stop()
        await self._engine.close()

    async def bury(self, container: str, *, output_ended: bool) -> Remains | None:
        """Remove a container and say how it ended; None when the engine is gone. Never raises."""
        try:
            remains = await self._engine.run(bury, container, output_ended=output_ended)
        except ENGINE_ERRORS as error:
            _LOG.warning("container %s is left to the next sweep: %s", container, error)
            self._owed.add(container)
            return None
        if not remains.gone:
            _LOG.warning("container %s is left to the next sweep: the engine does not remove it", container)
            self._owed.add(container)
        return remains

    def ran_out_of_memory(self, remains: Remains) -> bool:
        """Whether a container that ended did so at its memory limit, as far as the engine tells.

        A guest cannot kill gVisor's own kernel. The host's does at the limit, and often takes the cgroup with its count
        away before anybody has read it.
        """
        killed = remains.ended and remains.signal == signal.SIGKILL
        return remains.oom_killed or (killed and is_gvisor(self._runtime))

    def keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run work that must end even when its caller is cancelled; `close` waits for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _make(self, spec: SandboxSpec) -> DockerLink:
        name = f"evaluator-host-{secrets.token_hex(8)}"
        facts = await self._engine.facts()
        if (reason := refusal(facts, self._runtime)) is not None:
            raise SandboxUnavailable(reason)
        uid = UID_FIRST + secrets.randbelow(UID_COUNT)
        try:
            container = await self._create(name, spec, facts=facts, uid=uid)
        except docker.errors.ImageNotFound:  # another process removed it since it was looked up
            container = await self._create(name, spec, facts=facts, uid=uid)
        channel: Channel | None = None
        try:
            channel = await self._attach(container)
            counters = await self._engine.run(_launch, container, local=facts.local)
        except BaseException:
            if channel is not None:
                await channel.close()
            await self.bury(name, output_ended=False)
            raise
        return DockerLink(name, channel=channel, backend=self, counters=counters)

    async def _create(self, name: str, spec: SandboxSpec, *, facts: EngineFacts, uid: int) -> str:
        policy = self._policies.policy(facts, image=await self._layers.image_for(spec.environment))
        body = create_body(spec, policy=policy, engine=facts, uid=uid)
        try:
            return await self._engine.run(_create, body, name)
        except docker.errors.APIError:
            raise  # the engine said no
        except requests.RequestException:
            await self.bury(name, output_ended=False)  # it broke off, perhaps after having made it
            raise

    async def _attach(self, container: str) -> Channel:
        endpoint, api_version = await self._engine.endpoint()
        self.events.start(endpoint, api_version)
        if endpoint is None:
            return SshChannel(await self._engine.run(open_channel, container))
        return await attach(endpoint, container, api_version=api_version, timeout_s=REQUEST_TIMEOUT_S)

    def _unwanted(self, making: asyncio.Task[DockerLink]) -> None:
        """Destroy what was started for a caller who has gone."""
        if not making.cancelled() and making.exception() is None:
            _ = self.keep(making.result().destroy())

    def _pay_debts(self) -> None:
        """Remove what an absent engine could not: it answers again."""
        for container in self._owed:
            _ = self.keep(self._clear(container))

    async def _clear(self, container: str) -> bool:
        try:
            gone = await self._engine.run(remove, container)
        except ENGINE_ERRORS as error:
            _LOG.warning("container %s cannot be removed: %s", container, error)
            return False
        if gone:
            self._owed.discard(container)
        return gone


def _create(client: docker.APIClient, body: dict[str, Any], name: str) -> str:
    return str(client.create_container_from_config(body, name)["Id"])  # type: ignore[no-untyped-call]


def _launch(client: docker.APIClient, container: str, *, local: bool) -> tuple[Counter | None, Counter | None]:
    """Start the container and, on the engine's own machine, find its cgroup."""
    client.start(container)
    if not local:
        return None, None
    return find_counters(int(client.inspect_container(container)["State"]["Pid"]), container)
