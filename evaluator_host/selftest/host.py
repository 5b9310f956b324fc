"""Attacks the API of a host. No caller's requests may stop the host, or change another caller's answers.

A second host with the settings of the deployment runs in separate processes, as many as `serve` starts, with its own
database, data folder and port. While an attack's requests run, another workspace requests `/healthz` and evaluates
rows.
"""

import asyncio
import gzip
import multiprocessing
import os
import re
import socket
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

import httpx
from pydantic import BaseModel, ConfigDict, SecretStr

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.sandbox.linux.instance import instance_folder, remove_abandoned
from evaluator_host.engine.sandbox.linux.watchdog import child_pids, read_text
from evaluator_host.engine.system.forker import Forker
from evaluator_host.platform.store.opening import open_store
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.catalogue import ATTACKS_DIR, expand
from evaluator_host.selftest.hostile_files import FILES, package_index
from evaluator_host.selftest.trial import AttackResult, AttackVerdict
from evaluator_host.server.server import serve_http
from evaluator_host.server.workers import open_workers
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable

ATTACKERS: Final = "selftest-attacker"
NEIGHBOURS: Final = "selftest-neighbour"
_FOLDERS: Final = "selftest-"
_ANSWER_S: Final = 5.0  # processor seconds that the host may use for `/healthz`; a healthy host needs milliseconds
_LONGEST_S: Final = 120.0  # wall-clock limit of this request in seconds, in case the host gets no processor time
_ATTACK_S: Final = 30.0  # seconds for all requests of an attack
_START_S: Final = 60.0
_STOP_S: Final = 20.0
_PAUSE_S: Final = 0.1
_WATCH_S: Final = 1.0
_MOST_MEMORY_MB: Final = 600.0
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_NEIGHBOUR: Final = {"code": "def evaluate(inputs, outputs, trace):\n    return inputs['x'] / 1000\n"}


class AttackRequest(BaseModel):
    """One request of an attack.

    Attributes:
      path: Path of the route. `{job}` stands for the job that an earlier request created.
      body: The body; `{{'x' * 100}}` in it stands for `x` a hundred times.
      file: Name of a body in `hostile_files.FILES`, in place of `body`.
      times: How often the request is sent.
      streams: Number of event streams to open at once and hold for a second, in place of `times` requests.
      follow: Whether to wait for the job that the request creates.
    """

    model_config = ConfigDict(extra="forbid")

    method: Literal["GET", "POST"] = "POST"
    path: str
    body: str = ""
    file: str = ""
    type: str = "application/json"
    gzip: bool = False
    times: int = 1
    streams: int = 0
    follow: bool = False

    def encoded(self) -> tuple[bytes, dict[str, str]]:
        """Return the body of the request as it is sent, and its headers."""
        content = FILES[self.file]() if self.file else expand(self.body).encode()
        headers = {"Content-Type": self.type}
        return (gzip.compress(content), {**headers, "Content-Encoding": "gzip"}) if self.gzip else (content, headers)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    why: str
    requests: tuple[AttackRequest, ...]
    seen: str


def load_host_attacks() -> tuple[Attack, ...]:
    """Return the attacks in `attacks/host/attacks.toml`. These attacks are requests, so they have no code."""
    return tuple(
        Attack(name=name, group=Group.HOST, code="", why=table.why, seen=table.seen)
        for name, table in _tables().items()
    )


def load_requests() -> dict[str, tuple[AttackRequest, ...]]:
    """Return the requests of each attack on the host, by the name of the attack."""
    return {name: table.requests for name, table in _tables().items()}


def missing_file(attack: Attack) -> str | None:
    """Return why a file that an attack on the host sends cannot be made here. None if it can."""
    try:
        for request in load_requests().get(attack.name, ()):
            if request.file:
                FILES[request.file]()
    except Misconfigured as missing:
        return str(missing)
    return None


def _tables() -> dict[str, _Table]:
    raw = tomllib.loads((ATTACKS_DIR / "host" / "attacks.toml").read_text(encoding="utf-8"))
    return {name: _Table.model_validate(table) for name, table in raw.items()}


async def attack_host(
    settings: Settings, attacks: Sequence[Attack], *, progress: Callable[[AttackResult], None]
) -> tuple[tuple[AttackResult, ...], tuple[str, ...]]:
    """Start a host, run the attacks on its API one after another, and stop the host.

    Returns:
      The results, and each problem that the host has after all attacks.

    Raises:
      SandboxUnavailable: the host does not start.
    """
    tables = _tables()
    async with _host(settings) as host:
        results = []
        for attack in attacks:
            results.append(await host.attacked(attack, tables[attack.name]))
            progress(results[-1])
    memory_mb = host.peak_memory_mb
    problems = (f"a process of the host under attack took {memory_mb:.0f} MB",) if memory_mb > _MOST_MEMORY_MB else ()
    return tuple(results), problems


class _Host:
    """The host under attack, and a client for each of its two workspaces."""

    def __init__(self, process: Any, attacker: httpx.AsyncClient, neighbour: httpx.AsyncClient) -> None:
        self.peak_memory_mb = 0.0  # highest memory use of any process of the host
        self._process = process
        self._attacker = attacker
        self._neighbour = neighbour
        self._job = ""

    async def started(self) -> None:
        """Wait until the host answers and evaluates.

        Raises:
          SandboxUnavailable: the host does not start.
        """
        deadline = time.monotonic() + _START_S
        while problems := [problem async for problem in self._disturbed(_START_S)]:
            if time.monotonic() > deadline or not self._process.is_alive():
                raise SandboxUnavailable(f"the host to attack does not start: {problems[0]}")
            await asyncio.sleep(_PAUSE_S)

    async def attacked(self, attack: Attack, table: _Table) -> AttackResult:
        """Send an attack's requests, and return the result.

        During and after the attack, check another workspace's answers.
        """
        started = time.monotonic()
        sending = asyncio.create_task(self._send(table.requests))
        problems: list[str] = []
        while not sending.done():
            problems += [problem async for problem in self._disturbed(_ANSWER_S)]
            await asyncio.wait([sending], timeout=_PAUSE_S)
        problems += await sending
        problems += [f"afterwards, {problem}" async for problem in self._disturbed(_ANSWER_S)]
        self.peak_memory_mb = max(self.peak_memory_mb, *map(_peak_memory_mb, self._processes()))
        verdict = AttackVerdict.GOT_THROUGH if problems else AttackVerdict.STOPPED
        told = tuple(dict.fromkeys(problems))
        return AttackResult(attack, verdict, told, "the other workspace got its answers", time.monotonic() - started)

    async def _disturbed(self, patience_s: float) -> AsyncIterator[str]:
        """Yield a message for each wrong or missing answer to the other workspace."""
        try:
            await self._ask_health(patience_s)
            x = time.monotonic_ns() % 1000
            row = {"evaluator": _NEIGHBOUR, "inputs": {"x": x}}
            answer = await self._neighbour.post("/v1/evaluate", json=row, timeout=_ATTACK_S)
            if answer.status_code != httpx.codes.OK or answer.json()["score"] != x / 1000:
                yield f"another workspace got the answer {answer.status_code}: {answer.text[:200]}"
        except httpx.HTTPError as error:
            yield f"another workspace got no answer: {error!r}"

    async def _ask_health(self, patience_s: float) -> None:
        """Request `/healthz`. Raise an error if the answer takes over `patience_s`, unless only the machine is busy."""
        began, before_s = time.monotonic(), self._used_s()
        while True:
            try:
                (await self._neighbour.get("/healthz", timeout=patience_s)).raise_for_status()
            except httpx.TimeoutException:
                if self._used_s() - before_s > patience_s or time.monotonic() - began > _LONGEST_S:
                    raise
            else:
                return

    def _used_s(self) -> float:
        return sum(map(_used_s, self._processes()))

    def _processes(self) -> list[int]:
        """Return the first process of the host, and the processes for calls and jobs that it forked."""
        first = self._process.pid
        forked = [pid for forker in child_pids(first) for pid in child_pids(forker)]
        return [first, *(pid for pid in forked if _command(pid) == _command(first))]

    async def _send(self, requests: Sequence[AttackRequest]) -> list[str]:
        problems: list[str] = []
        with suppress(TimeoutError):  # only the attacker's requests may time out, not those of the other workspace
            async with asyncio.timeout(_ATTACK_S):
                for request in requests:
                    for _ in range(request.times):
                        problems += await self._ask(request)
        return problems

    async def _ask(self, request: AttackRequest) -> list[str]:
        content, headers = request.encoded()
        path = request.path.format(job=self._job)
        try:
            if request.streams:
                return await self._watch(path, request.streams)
            answer = await self._attacker.request(
                request.method, path, content=content, headers=headers, timeout=_ATTACK_S
            )
            if path == "/v1/jobs" and request.method == "POST" and answer.is_success:
                self._job = answer.json()["id"]
                if request.follow:
                    await self._follow(self._job)
        except httpx.HTTPError as error:
            return [] if isinstance(error, httpx.TimeoutException) else [f"{request.path} got no answer: {error!r}"]
        return [f"{request.path} got status 500"] if answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR else []

    async def _watch(self, path: str, count: int) -> list[str]:
        async with AsyncExitStack() as open_streams:
            for _ in range(count):
                _ = await open_streams.enter_async_context(self._attacker.stream("GET", path, timeout=_ATTACK_S))
            await asyncio.sleep(_WATCH_S)
        return []

    async def _follow(self, job_id: str) -> None:
        path = f"/v1/jobs/{job_id}"
        while True:
            if (await self._attacker.get(path, timeout=_ATTACK_S)).json().get("status") in _ENDED:
                break
            await asyncio.sleep(_PAUSE_S)
        for part in ("results", "rows?limit=1000&brief=true"):
            await self._attacker.get(f"{path}/{part}", timeout=_ATTACK_S)


def _used_s(pid: int) -> float:
    fields = read_text(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _peak_memory_mb(pid: int) -> float:
    found = re.search(r"VmHWM:\s*(\d+)", read_text(f"/proc/{pid}/status"))
    return int(found[1]) / 1024 if found else 0.0


def _command(pid: int) -> str:
    return read_text(f"/proc/{pid}/cmdline")


@asynccontextmanager
async def _host(settings: Settings) -> AsyncIterator[_Host]:
    remove_abandoned(_FOLDERS)
    with instance_folder(_FOLDERS) as outer, package_index() as index:
        folder = _prepared_folder(outer, settings)
        changes = {
            "pip_index_url": SecretStr(index),
            "no_proxy": ",".join(filter(None, ("127.0.0.1", settings.no_proxy))),
        }
        own = settings.model_copy(update={"data_dir": folder, "database_url": None, "idle_sandboxes": 0, **changes})
        async with open_store(own) as store:
            tokens = [(await store.keys.create_key("selftest", space))[1] for space in (ATTACKERS, NEIGHBOURS)]
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with _process(own, listener) as process:
                async with _client(address, tokens[0]) as attacker, _client(address, tokens[1]) as neighbour:
                    host = _Host(process, attacker, neighbour)
                    await host.started()
                    yield host


def _prepared_folder(folder: Path, settings: Settings) -> Path:
    """Return a data folder with the tools that are already in the deployment's data folder."""
    folder.chmod(0o755)
    (folder / "toolchain").symlink_to(settings.data_dir.resolve() / "toolchain")
    return folder


def _client(address: str, token: str) -> httpx.AsyncClient:
    """Return a client that opens a connection for each request, since the host may close idle connections."""
    limits = httpx.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=address, headers=headers, trust_env=False, limits=limits)


@contextmanager
def _process(settings: Settings, listener: socket.socket) -> Iterator[Any]:
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(settings, listener), daemon=True)
    process.start()
    listener.close()
    try:
        yield process
    finally:
        process.terminate()
        process.join(_STOP_S)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(settings: Settings, listener: socket.socket) -> None:
    with open_workers(settings, listener, forker=Forker(), debug=False) as part:
        asyncio.run(serve_http(settings, listener, part=part))
