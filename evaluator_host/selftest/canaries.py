"""Places listeners and a file with a secret on the host. An attack that reaches one of them was not stopped."""

import asyncio
import hashlib
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from evaluator_host.engine.config.settings import ModelEndpoint, Settings
from evaluator_host.engine.sandbox.linux.instance import instance_folder, remove_abandoned
from evaluator_host.engine.system.lookups import resolve
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import decode_json, encode_json

ENGINE_SOCKETS: Final = (
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/var/run/crio/crio.sock",
)
MODEL: Final = "canary"
SLOW: Final = "*.slow.invalid:80"  # names that exist nowhere (RFC 2606), so a lookup never reaches a real name server
_SILENT_S: Final = 4.0
_PREFIX: Final = "selftest-"
_SLOW_S: Final = 1.5
_MARK_BYTES: Final = 6  # number of random bytes: their hex digits and two letters fit into a process name


@dataclass(slots=True)
class Canaries:
    """The listeners and the secret file of one selftest.

    Attributes:
      inputs: The keys of an attack's `inputs` that say where the listeners and the file are.
      secret: Content of the secret file. It must never appear in a result.
      visits: Names of the listeners that got a connection, one name for each connection.
      model_url: Base URL of a model. Its key is the secret; its answers contain this key and a count of requests.
    """

    inputs: dict[str, Json]
    secret: str
    visits: list[str] = field(default_factory=list)
    model_url: str = ""

    def granting(self, settings: Settings) -> Settings:
        """Return `settings`, changed so that evaluators may reach `inputs["granted"]` and the model `canary`.

        `inputs["granted"]` is the address of a listener.
        """
        model = ModelEndpoint(base_url=self.model_url, key=SecretStr(self.secret))
        hosts = {"network_hosts": (self.inputs["granted"], SLOW), "network_private": ("127.0.0.1/32",)}
        return settings.model_copy(update={"models": {MODEL: model}, **hosts})

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a name. A name below `slow.invalid` behaves as if its name server did not answer."""
        if host.endswith(SLOW.removeprefix("*").partition(":")[0]):
            time.sleep(_SILENT_S)
            raise OSError("its name server did not answer")
        return resolve(host, port)


def new_mark() -> str:
    """Return a random name that occurs nowhere else on this machine."""
    return f"eh{secrets.token_hex(_MARK_BYTES)}"


@asynccontextmanager
async def placed_canaries(data_dir: Path, *, engine: str | None) -> AsyncIterator[Canaries]:
    """Start the listeners, write the secret file on this machine, and yield both. Remove them when the block ends.

    Args:
      data_dir: Data directory of the host; the file and the socket are in a folder below it.
      engine: Address of the container engine in use.
    """
    with _folder(data_dir) as folder:
        abstract = new_mark()
        canaries = _canaries(folder, abstract=abstract, engine=engine)
        tcp = await asyncio.start_server(_counting(canaries, "port"), "127.0.0.1", 0)
        canaries.inputs["port"] = tcp.sockets[0].getsockname()[1]
        model = await asyncio.start_server(_model(canaries), "127.0.0.1", 0)
        canaries.inputs["granted"] = f"localhost:{model.sockets[0].getsockname()[1]}"
        canaries.model_url = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1"
        servers = [
            tcp,
            model,
            await asyncio.start_unix_server(_counting(canaries, "abstract"), f"\0{abstract}"),
            *(await _unix_server(canaries, folder / "s")),
        ]
        try:
            yield canaries
        finally:
            for server in servers:
                server.close()
                await server.wait_closed()


@contextmanager
def _folder(data_dir: Path) -> Iterator[Path]:
    """Yield a new folder that every user may read, so that only the sandbox keeps the attack's code out."""
    data_dir.mkdir(parents=True, exist_ok=True)
    remove_abandoned(_PREFIX, data_dir)
    with instance_folder(_PREFIX, data_dir) as folder:
        folder.chmod(0o755)
        yield folder


def _canaries(folder: Path, *, abstract: str, engine: str | None) -> Canaries:
    secret = secrets.token_hex(16)
    (folder / "secret.txt").write_text(secret)
    inputs: dict[str, Json] = {
        "file": str(folder / "secret.txt"),
        "socket": str(folder / "s"),
        "abstract": abstract,
        "addresses": _addresses(),
        "passwd": hashlib.sha256(Path("/etc/passwd").read_bytes()).hexdigest(),
        "pid": os.getpid(),
        "command": hashlib.sha256(Path("/proc/self/cmdline").read_bytes()).hexdigest(),
        "engine": [*ENGINE_SOCKETS, *([engine.removeprefix("unix://")] if engine else [])],
    }
    return Canaries(inputs, secret)


def _open_to_all(path: Path) -> None:
    path.chmod(0o777)


def _counting(
    canaries: Canaries, name: str
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
    async def visit(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        canaries.visits.append(name)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    return visit


async def _unix_server(canaries: Canaries, path: Path) -> list[asyncio.Server]:
    try:
        server = await asyncio.start_unix_server(_counting(canaries, "socket"), path)
    except OSError:  # the data directory's path is too long for the path of a socket
        return []
    _open_to_all(path)
    return [server]


def _model(canaries: Canaries) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
    """Return the connection handler of a fake model provider.

    It answers `count X` with the number of requests for X, and `wait X` after 1.5 seconds.
    """
    questions: Counter[str] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ValueError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            question = str(decode_json(await reader.readexactly(length))["messages"][0]["content"])
            questions[question] += 1
            if question.startswith("wait "):
                with suppress(TimeoutError):  # answer after a pause, or at once when the caller has gone
                    await asyncio.wait_for(reader.read(1), _SLOW_S)
            said = f"Bearer {canaries.secret}|{questions[question.removeprefix('count ')]}"
            body = encode_json({"choices": [{"message": {"role": "assistant", "content": said}}]})
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    return answer


def _addresses() -> list[str]:
    """Return the addresses by which other machines reach this one."""
    found = []
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            # connecting a UDP socket only looks up a route; nothing is sent to this example address
            probe.connect((elsewhere, 9))
            found.append(probe.getsockname()[0])
    return found
