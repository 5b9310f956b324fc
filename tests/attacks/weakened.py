"""Removes single guards from both backends, so that tests can check that attacks succeed without the guards.

    with weakened({Guard.SECCOMP}, folder=tmp_path):
        ...  # every sandbox that starts here has no filter

This is only for tests. It replaces functions that build arguments with functions that leave something out, it replaces
the limits with which a sandbox starts, or it replaces lines in a copy of the runner. No setting can do any of this.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox import messages as answers
from evaluator_host.engine.sandbox.base import Gate
from evaluator_host.engine.sandbox.bubblewrap import backend as bubblewrap
from evaluator_host.engine.sandbox.bubblewrap.policy import Identity
from evaluator_host.engine.sandbox.docker import backend as docker
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.engine.service import Service, calls, model_grants, prepared
from evaluator_host.engine.service.source import CleanSource
from evaluator_host.engine.system.lookups import Lookups
from evaluator_host.platform.models.gateway import connection as gateway_connection
from evaluator_host.platform.models.gateway import gateway
from evaluator_host.platform.models.judges import open_judges
from evaluator_host.selftest.attack import Attack, Guard
from evaluator_host.selftest.canaries import Canaries, placed_canaries
from evaluator_host.selftest.trial import AttackResult, AttackVerdict, neighbour_problems, run_attack
from evaluator_host.types.evaluator import SandboxSpec
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult, Status
from evaluator_host.types.redaction import Redactor
from tests.attacks.shared_sandboxes import in_shared_sandboxes
from tests.attacks.weakened_runner import EDITS, edit_runner
from tests.conftest import settings

_RIGHTS: Final = (
    "SYS_ADMIN",
    "SYS_PTRACE",
    "SYS_CHROOT",
    "NET_RAW",
    "NET_ADMIN",
    "SETUID",
    "SETGID",
    "MKNOD",
    "SYS_NICE",
)
_HOST_FOLDERS: Final = ("/var", "/run", "/root", "/home", "/srv")
_NAMED: Final = {
    Guard.TIMEOUT: ErrorCode.TIMEOUT,
    Guard.MEMORY: ErrorCode.MEMORY_LIMIT,
    Guard.PROCESSES: ErrorCode.PROCESS_LIMIT,
    Guard.DISK: ErrorCode.DISK_LIMIT,
    Guard.RESULT: ErrorCode.RESULT_TOO_LARGE,
}
"""Limits, and the errors of programs that exceed them."""
_STAYS: Final = {
    Guard.ROWS, Guard.CLEANING, Guard.CHANNEL, Guard.ANSWERS, Guard.STREAMS, Guard.SCRATCH, Guard.READ_ONLY, Guard.VERDICT,
}  # fmt: skip
"""Guards that are never removed. Without them, an attack might succeed only because another attack runs in the same
sandbox."""
_SECRET: Final = "EVALUATOR_HOST_SECRET_OF_TESTS=s3cret"
LOAD_TIMEOUT_S: Final = 0.7  # seconds; short, because a loop at module level uses this much processor time twice


@dataclass(frozen=True, slots=True)
class AttackedHost:
    """A running host, with the files and secrets that attacks try to reach. A guard that is removed is missing only in
    sandboxes that start afterwards.
    """

    service: Service
    canaries: Canaries

    async def never_through(self, attacks: Sequence[Attack], *, at_once: int) -> list[str]:
        """Return the names of attacks that never succeed. Attacks that fail at first are tried again, one at a time,
        because some must win a race.
        """
        while self.service.pool._evict_idle():  # remove idle sandboxes, which were started with other guards
            pass
        for language in {attack.language for attack in attacks}:
            assert await neighbour_problems(self.service, language) == [], "an honest evaluator must still run"
        left = in_shared_sandboxes([one for one in attacks if not one.without & _STAYS])
        left += [one for one in attacks if one.without & _STAYS]
        for together in (at_once, 1, 1, 1):
            turn = asyncio.Semaphore(together)
            results = await asyncio.gather(*(self._try(attack, turn) for attack in left))
            left = [one.attack for one in results if one.verdict is not AttackVerdict.GOT_THROUGH]
            if not left:
                break
        return [attack.name for attack in left]

    async def _try(self, attack: Attack, turn: asyncio.Semaphore) -> AttackResult:
        async with turn:
            return await run_attack(attack, self.service, self.canaries)


def to_be_seen(attacks: Sequence[Attack]) -> list[Attack]:
    """Return the attacks that must succeed without these guards. Of the attacks that end with an error that names the
    guard, only one is returned.
    """
    said = [attack for attack in attacks if says_what_stopped_it(attack)]
    return [attack for attack in attacks if attack not in said[1:]]


def says_what_stopped_it(attack: Attack) -> bool:
    """Whether an attack has only one guard and ends with an error that names it; `test_catalogue.py` checks that error."""
    if attack.without == {Guard.VERDICT}:
        return all(one.status is Status.FAILED for one in attack.expected)
    return any(
        attack.without == {guard} and all(one.codes == (code,) for one in attack.expected)
        for guard, code in _NAMED.items()
    )


@asynccontextmanager
async def attacked_host(backend: str) -> AsyncIterator[AttackedHost]:
    """Run a host for attacks; it starts each of its few sandboxes only when the sandbox is needed."""
    chosen = settings(backend, load_timeout_s=LOAD_TIMEOUT_S)
    engine = chosen.engine_address if backend == "docker" else None
    async with (
        placed_canaries(chosen.data_dir, engine=engine) as canaries,
        open_judges(canaries.granting(chosen), None, names=Lookups(canaries.resolve)) as models,
        open_engine(chosen, models=models) as service,
    ):
        yield AttackedHost(service, canaries)


@contextmanager
def weakened(guards: AbstractSet[Guard], *, folder: Path) -> Iterator[None]:
    """Start all sandboxes without these guards during the block.

    Sandboxes are not forked from a template, even if the settings ask for that, because guards are removed from
    bubblewrap's arguments. Whether an attack succeeds without its guard does not depend on the way in which sandboxes
    start.

    Args:
      guards: The guards to remove.
      folder: A new folder for a copy of the runner.
    """
    folder.chmod(0o755)
    if guards & (EDITS.keys() | {Guard.READ_ONLY}):
        edit_runner(guards, folder / "runner")
    with pytest.MonkeyPatch.context() as patch:
        _weaken_bubblewrap(patch, guards, folder)
        _weaken_docker(patch, guards, folder)
        _weaken_limits(patch, guards)
        _weaken_host(patch, guards)
        yield


# Weakening bubblewrap


def _weaken_bubblewrap(patch: pytest.MonkeyPatch, guards: AbstractSet[Guard], folder: Path) -> None:
    build = bubblewrap.bubblewrap_args

    def arguments(*args: Any, **kwargs: Any) -> list[str]:
        return _weaker_arguments(build(*args, **kwargs), guards, folder)

    patch.setattr(bubblewrap, "bubblewrap_args", arguments)
    patch.setattr(bubblewrap.BubblewrapBackend, "_forks", lambda *_: False)
    if Guard.CAPABILITIES in guards:  # in a user namespace, capabilities are not valid on the machine itself
        patch.setattr(bubblewrap, "choose_identity", Identity)
    if Guard.ENVIRONMENT in guards:
        name, value = _SECRET.split("=")
        child = bubblewrap.Child
        patch.setattr(bubblewrap, "Child", lambda command, *, env, **more: child(command, env={name: value}, **more))


def _weaker_arguments(arguments: list[str], guards: AbstractSet[Guard], folder: Path) -> list[str]:
    without = [word for guard, word in _OPTIONS.items() if guard in guards]
    made = [word for word in arguments if word not in without]
    if Guard.SECCOMP in guards:
        _cut(made, made.index("--seccomp"), 2)
    if Guard.CAPABILITIES in guards:
        _add_capabilities(made)
    runner = _bind_of(made, "/opt/runner")
    if (folder / "runner").exists() and made[runner + 1].endswith("/python"):
        made[runner : runner + 2] = ["--bind" if Guard.READ_ONLY in guards else "--ro-bind", str(folder / "runner")]
    if Guard.SCRATCH in guards:  # the arguments are: --perms 1777 --size BYTES --tmpfs /tmp
        _cut(made, made.index("/tmp", made.index("--tmpfs")) - 5, 6, "--bind", str(_shared(folder)), "/tmp")
    _cut(made, _last_mount(made), 0, *_added_mounts(guards))
    if Guard.ROOT in guards:
        while "--file" in made:  # the arguments are: --perms 0444 --file DESCRIPTOR /etc/NAME
            _cut(made, made.index("--file") - 2, 5)
    if Guard.READ_ONLY in guards:
        _cut(made, _last_mount(made), 2, "--perms", "0777", "--dir", "/opt/open")
    return made


_OPTIONS: Final = {
    Guard.NETWORK: "--unshare-net",
    Guard.IPC: "--unshare-ipc",
    Guard.ENVIRONMENT: "--clearenv",
}


def _added_mounts(guards: AbstractSet[Guard]) -> Iterator[str]:
    if Guard.ROOT in guards:
        for path in (*_HOST_FOLDERS, "/etc"):
            yield from ("--ro-bind-try", path, path)
    if Guard.PROC in guards:
        yield from ("--ro-bind", "/proc", "/opt/proc")


def _add_capabilities(arguments: list[str]) -> None:
    for option in ("--uid", "--gid"):
        arguments[arguments.index(option) + 1] = "0"
    _cut(arguments, arguments.index("--cap-drop"), 2, "--cap-add", "ALL")
    if "--disable-userns" in arguments:
        arguments.remove("--disable-userns")


def _bind_of(arguments: list[str], target: str) -> int:
    """Return the index of the argument that mounts a file or folder at a target."""
    return next(at for at, word in enumerate(arguments) if word == "--ro-bind" and arguments[at + 2] == target)


def _last_mount(arguments: list[str]) -> int:
    """Return the index of the last mount, which is the argument that makes the root read-only."""
    return next(at for at, word in enumerate(arguments) if word == "--remount-ro" and arguments[at + 1] == "/")


def _cut(arguments: list[str], at: int, count: int, *instead: str) -> None:
    arguments[at : at + count] = instead


def _shared(folder: Path) -> Path:
    """Return a folder that sandboxes without the guard share as their /tmp."""
    shared = folder / "shared"
    shared.mkdir(exist_ok=True)
    shared.chmod(0o777)
    return shared


# Weakening Docker


def _weaken_docker(patch: pytest.MonkeyPatch, guards: AbstractSet[Guard], folder: Path) -> None:
    build = docker.create_body

    def body(*args: Any, **kwargs: Any) -> dict[str, Any]:
        made = build(*args, **kwargs)
        for guard, weaken in _DOCKER.items():
            if guard in guards:
                weaken(made, made["HostConfig"])
        mounts = made["HostConfig"].setdefault("Binds", [])
        if (folder / "runner").exists() and "/usr/bin/python3" in made["Cmd"]:
            mounts.append(f"{folder / 'runner'}:/opt/runner/python:{'rw' if Guard.READ_ONLY in guards else 'ro'}")
        if Guard.SCRATCH in guards:
            del made["HostConfig"]["Tmpfs"]["/tmp"]
            mounts.append(f"{_shared(folder)}:/tmp")
        return made

    patch.setattr(docker, "create_body", body)


def _network(made: dict[str, Any], host: dict[str, Any]) -> None:
    made["NetworkDisabled"] = False
    host["NetworkMode"] = "host"
    del made["Hostname"]


def _root(_made: dict[str, Any], host: dict[str, Any]) -> None:
    folders = [path for path in (*_HOST_FOLDERS, "/etc") if Path(path).exists()]
    host.setdefault("Binds", []).extend(f"{path}:{path}:ro" for path in folders)


def _capabilities(made: dict[str, Any], host: dict[str, Any]) -> None:
    made["User"] = "0:0"
    host["CapDrop"] = []
    host["CapAdd"] = list(_RIGHTS)
    host["SecurityOpt"] = [option for option in host["SecurityOpt"] if option != "no-new-privileges"]


def _seccomp(_made: dict[str, Any], host: dict[str, Any]) -> None:
    others = [option for option in host["SecurityOpt"] if not option.startswith("seccomp=")]
    host["SecurityOpt"] = [*others, "seccomp=unconfined"]


def _environment(made: dict[str, Any], _host: dict[str, Any]) -> None:
    made["Env"].append(_SECRET)


_DOCKER: Final[dict[Guard, Callable[[dict[str, Any], dict[str, Any]], None]]] = {
    Guard.NETWORK: _network,
    Guard.ROOT: _root,
    Guard.READ_ONLY: lambda _made, host: host.update(ReadonlyRootfs=False),
    Guard.PROC: lambda _made, host: host.update(PidMode="host"),
    Guard.SECCOMP: _seccomp,
    Guard.CAPABILITIES: _capabilities,
    Guard.IPC: lambda _made, host: host.update(IpcMode="host"),
    Guard.ENVIRONMENT: _environment,
}


# Weakening the limits of either backend and of the runner


_OF_THE_SANDBOX: Final = {
    # attacks take either at most 300 MB or all the memory that there is; a higher limit would only take more time
    Guard.MEMORY: ("memory_mb", 512),
    Guard.PROCESSES: ("processes", 1000),
    Guard.DISK: ("disk_mb", 256),
}
_OF_THE_RUNNER: Final = {**_OF_THE_SANDBOX, Guard.LOGS: ("log_kb", 1000), Guard.RESULT: ("result_kb", 4 * 1024)}
_LONG_S: Final = 0.05  # seconds that are added to a time limit; few, so that the error names another limit


def _higher_limits(guards: AbstractSet[Guard], limits: Mapping[Guard, tuple[str, int]]) -> dict[str, Any]:
    higher: dict[str, Any] = dict(limits[guard] for guard in guards & limits.keys())
    if guards >= {Guard.MEMORY, Guard.PROCESSES}:
        higher["memory_mb"] = 1024  # a thousand processes need more memory than the raised limit
    return higher


def _weaken_limits(patch: pytest.MonkeyPatch, guards: AbstractSet[Guard]) -> None:
    told = _higher_limits(guards, _OF_THE_RUNNER)
    load, send, receive = Sandbox.load, Sandbox.send, Sandbox.receive
    late = Guard.TIMEOUT in guards

    async def weaker_load(self: Sandbox, order: Any, **more: Any) -> Any:
        timeout_s = order.timeout_s + _LONG_S if late else order.timeout_s
        return await load(self, replace(order, limits=replace(order.limits, **told), timeout_s=timeout_s), **more)

    def weaker_send(
        self: Sandbox, body: bytes, *, timeout_s: float, share: str | None = None, gate: Gate | None = None
    ) -> None:
        share = "all" if Guard.ROWS in guards else share
        send(self, body, timeout_s=timeout_s + _LONG_S if late else timeout_s, share=share, gate=gate)

    async def weaker_receive(self: Sandbox, *, timeout_s: float) -> Any:
        return await receive(self, timeout_s=timeout_s + _LONG_S if late else timeout_s)

    patch.setattr(Sandbox, "load", weaker_load)
    patch.setattr(Sandbox, "send", weaker_send)
    patch.setattr(Sandbox, "receive", weaker_receive)
    more = _higher_limits(guards, _OF_THE_SANDBOX)
    for backend in (bubblewrap.BubblewrapBackend, docker.DockerBackend):
        _start_larger(patch, backend, more)


def _start_larger(patch: pytest.MonkeyPatch, backend: Any, more: dict[str, Any]) -> None:
    start = backend.start

    async def weaker_start(self: Any, spec: SandboxSpec) -> Any:
        return await start(self, replace(spec, **more))

    patch.setattr(backend, "start", weaker_start)


# Weakening the host


def _weaken_host(patch: pytest.MonkeyPatch, guards: AbstractSet[Guard]) -> None:
    if Guard.VERDICT in guards:
        patch.setattr(calls, "result", _scored_whatever(calls.result))
    if Guard.GATE in guards:
        patch.setattr(model_grants.Meter, "refusal", lambda _meter, *, priced: None)
        patch.setattr(gateway_connection, "_check_head", lambda _head: None)
        patch.setattr(gateway_connection, "UNREAD_BYTES", 1 << 40)
        patch.setattr(Lookups, "_may_run", lambda names, _workspace: names._running.total() < 16)
        patch.setattr(gateway.Grant, "admits", lambda _grant, _to: True)
        patch.setattr(Redactor, "text", lambda _redactor, text: text)
    if Guard.SOURCE in guards:
        patch.setattr(prepared, "cleaned", lambda code, _language: CleanSource(code))
    if Guard.HOST in guards:
        patch.setattr(answers, "_error", lambda raw: EvaluationError(ErrorCode(raw["code"]), raw["message"]))


def _scored_whatever(result: Callable[..., Any]) -> Callable[..., Any]:
    """Make a host return a score for every program, even if the program exits, hangs or raises an error."""

    async def weaker(*args: Any, **kwargs: Any) -> EvaluationResult:
        made: EvaluationResult = await result(*args, **kwargs)
        return replace(made, status=Status.SCORED, score=1.0, error=None) if made.error is not None else made

    return weaker
