"""Connects to a Docker engine, finds out what it can do, and turns its errors into advice for the operator.

docker-py blocks, so every request runs in a separate thread; the event loop never waits for an engine.
"""

import asyncio
import contextlib
import grp
import os
import platform
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

import docker
import docker.errors
import docker.utils
import requests
import urllib3

from evaluator_host.engine.sandbox.docker.attach import AttachFailed, EngineAddress
from evaluator_host.engine.sandbox.docker.policy import EngineFacts
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable

P = ParamSpec("P")
T = TypeVar("T")

ENGINE_ERRORS: Final = (
    docker.errors.DockerException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    AttachFailed,
    OSError,  # includes TimeoutError, which is an OSError
)
"""Errors that docker-py and `attach` raise when an engine is absent, refuses or breaks off."""

_NO_RUNTIME: Final = re.compile(r"(unknown|invalid) (or invalid )?runtime|oci runtime \S+ not found")
# The error message is "Unknown runtime specified x" in Docker 20.10, "unknown or invalid runtime name: x" from 23 on.

# longest time to wait for an answer, in seconds; starting a container on a loaded machine takes several seconds
REQUEST_TIMEOUT_S: Final = 60
_OLDEST_API: Final = "1.41"  # version of Docker 20.10 and Podman 3, used until the engine has reported its own
_FORWARD: Final = (
    "an engine cannot be reached by {address}: forward its socket instead (`ssh -nNT -L "
    "/run/user/1000/engine.sock:/var/run/docker.sock USER@HOST`) and set "
    "EVALUATOR_HOST_DOCKER_HOST=unix:///run/user/1000/engine.sock"
)
# maximum number of simultaneous requests: docker-py keeps 10 connections, and an engine starts containers slowly
_THREADS: Final = 8


class Engine:
    """A Docker engine, connected on first use and reconnected automatically.

    Raises:
      Misconfigured: the address begins with `ssh://`.
    """

    def __init__(self, docker_host: str | None, *, timeout_s: int = REQUEST_TIMEOUT_S) -> None:
        # the engine's address, `unix:///…` or `tcp://…`, in docker-py's form
        self.address = docker_host or default_address()
        if self.address.startswith("ssh://"):
            raise Misconfigured(_FORWARD.format(address=self.address))
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="docker")
        self._lock = threading.Lock()
        self._client: docker.APIClient | None = None
        self._facts: EngineFacts | None = None
        self._endpoint: tuple[EngineAddress, str] | None = None

    async def run(
        self, function: Callable[Concatenate[docker.APIClient, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `function(client, …)` in a thread; return its result or raise its exception, often `ENGINE_ERRORS`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(self.client(), *args, **kwargs))

    def _require_listener(self) -> None:
        """Raise OSError if nothing listens at the engine's address.

        docker-py would turn this error into a string, and leave its socket open.
        """
        if self.address.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(self._timeout_s)
                probe.connect(self.address.removeprefix("unix://"))

    def client(self) -> docker.APIClient:
        """Return the docker-py client; the first call blocks for one request."""
        self._require_listener()
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> docker.APIClient:
        # docker-py reads DOCKER_CERT_PATH and DOCKER_TLS_VERIFY here
        options: dict[str, Any] = dict(docker.utils.kwargs_from_env())
        options |= {"base_url": self.address, "timeout": self._timeout_s}
        # If a client requested the version while it is constructed, it would trust the authorities in
        # REQUESTS_CA_BUNDLE instead of the engine's CA.
        with contextlib.closing(docker.APIClient(version=_OLDEST_API, **options)) as first:
            first.trust_env = False
            version = first.version(api_version=False)["ApiVersion"]
        client = docker.APIClient(version=version, **options)
        client.trust_env = False
        return client

    async def facts(self, *, fresh: bool = False) -> EngineFacts:
        """Return what the engine can do.

        The first call queries the engine. Later calls return the same answer, unless `fresh` is true.
        """
        if self._facts is None or fresh:
            info, version = await self.run(lambda client: (client.info(), client.version()))
            self._facts = engine_facts(self.address, info=info, version=version)
        return self._facts

    @property
    def machine(self) -> str:
        """Return the processor type of the engine's machine, or of this machine until the engine has answered once."""
        return self._facts.arch if self._facts else platform.machine()

    async def endpoint(self) -> tuple[EngineAddress, str]:
        """Return the engine's address for attaching, and the API version to use."""
        if self._endpoint is None:
            self._endpoint = await self.run(self._find_endpoint)
        return self._endpoint

    def _find_endpoint(self, client: docker.APIClient) -> tuple[EngineAddress, str]:
        parts = urlsplit(str(docker.utils.parse_host(self.address)))
        if "unix" in parts.scheme:
            return EngineAddress(path=f"/{(parts.netloc + parts.path).lstrip('/')}"), client.api_version
        tls = _tls_context(client) if client.base_url.startswith("https://") else None
        return EngineAddress(host=parts.hostname or "", port=parts.port or 0, tls=tls), client.api_version

    async def close(self) -> None:
        """Finish running requests and close every connection."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        if self._client is not None:
            self._client.close()
            self._client = None


def find_image(client: docker.APIClient, image: str) -> dict[str, Any] | None:
    """Return the engine's description of an image (`Id`, `Config.Labels`, …), or None if the engine lacks the image.

    Blocking.
    """
    try:
        found: dict[str, Any] = client.inspect_image(image)  # type: ignore[no-untyped-call]
    except docker.errors.ImageNotFound:
        return None
    return found


def image_labels(client: docker.APIClient, image: str) -> dict[str, str] | None:
    """Return an image's labels, or None when the engine has no such image. Blocking."""
    found = find_image(client, image)
    return None if found is None else (found.get("Config") or {}).get("Labels") or {}


def default_address() -> str:
    """Return the address of the first engine socket on this machine: of Docker, rootless Docker or Podman.

    If none of these sockets exists, return the address of Docker's socket.
    """
    own = Path(f"/run/user/{os.getuid()}")
    places = (
        Path("/var/run/docker.sock"),
        own / "docker.sock",
        Path("/run/podman/podman.sock"),
        own / "podman/podman.sock",
    )
    found = next((place for place in places if _is_socket(place)), places[0])
    return f"unix://{found}"


def engine_facts(address: str, *, info: Mapping[str, Any], version: Mapping[str, Any]) -> EngineFacts:
    """Return what an engine can do, from `/info` and `/version`; what they do not mention counts as missing."""
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    components = [str(component.get("Name", "")) for component in version.get("Components") or ()]
    return EngineFacts(
        address=address,
        name=str(info.get("Name") or ""),
        version=str(version.get("Version", "")),
        podman=any("podman" in name.lower() for name in components),
        local=address.startswith(("unix://", "http+unix://")),
        cpus=int(info.get("NCPU") or 1),
        arch=str(version.get("Arch", "")),
        cgroup_version=str(info.get("CgroupVersion") or ""),
        memory_limit=bool(info.get("MemoryLimit")),
        swap_limit=bool(info.get("SwapLimit")),
        pids_limit=bool(info.get("PidsLimit")),
        cpu_quota=bool(info.get("CpuCfsQuota") or info.get("CPUCfsQuota")),
        seccomp=any("seccomp" in option for option in options),
        rootless=any("rootless" in option for option in options),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        unlimited_runtimes=tuple(sorted(filter(None, map(_unlimited, (info.get("Runtimes") or {}).items())))),
        default_runtime=str(info.get("DefaultRuntime") or ""),
    )


def is_this_machine(facts: EngineFacts) -> bool:
    """Return whether the engine runs on this machine.

    A Unix socket does not prove that, because it may be forwarded from another machine (`ssh -L`).
    """
    return facts.local and facts.name in ("", socket.gethostname())


def _unlimited(runtime: tuple[str, Mapping[str, Any]]) -> str | None:
    name, configured = runtime
    arguments = [str(argument).lstrip("-") for argument in (configured or {}).get("runtimeArgs") or ()]
    return name if {"ignore-cgroups", "ignore-cgroups=true"} & set(arguments) else None


def unavailable(error: BaseException, *, address: str, image: str) -> SandboxUnavailable:
    """Return the exception for one of `ENGINE_ERRORS`; its message advises the operator."""
    words = _words(error)
    if any(isinstance(cause, PermissionError) for cause in _causes(error)):
        return SandboxUnavailable(f"no permission to use the Docker engine at {address}; {_permission_advice(address)}")
    if isinstance(error, docker.errors.APIError) or (isinstance(error, AttachFailed) and error.status):
        return SandboxUnavailable(_refusal(words, image=image))
    if any(isinstance(cause, OSError) and cause.errno for cause in _causes(error)) or isinstance(error, AttachFailed):
        return SandboxUnavailable(
            f"no Docker engine answers at {address} ({words}); start it (`systemctl start docker`), or name another "
            "engine with EVALUATOR_HOST_DOCKER_HOST or DOCKER_HOST"
        )
    if any(isinstance(cause, TimeoutError | requests.Timeout) for cause in _causes(error)):
        return SandboxUnavailable(
            f"the Docker engine at {address} hangs: it accepts requests, but does not answer ({words}); restart it "
            "(`systemctl restart docker`)"
        )
    return SandboxUnavailable(
        f"the Docker engine at {address} failed: {words}; run `evaluator-host doctor` to see more"
    )


def _refusal(words: str, *, image: str) -> str:
    low = words.lower()
    if "no such image" in low or "image not known" in low:
        return f"the engine has no image {image}; run `evaluator-host images build`"
    if _NO_RUNTIME.search(low):
        return (
            f"the engine does not know the runtime ({words}); add it to the engine's configuration, "
            "or unset EVALUATOR_HOST_DOCKER_RUNTIME"
        )
    if "with network enabled in root network namespace" in low:  # gVisor reports this for a container without network
        return (
            "the engine runs gVisor with its network on; give the runtime the argument --network=none in the engine's "
            'configuration: "runsc": {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=none"]}'
        )
    return f"the engine refused: {words}; its own log says more (`journalctl -u docker`)"


def _permission_advice(address: str) -> str:
    path = Path(urlsplit(address).path)
    try:
        group = grp.getgrgid(path.stat().st_gid).gr_name
    except (OSError, KeyError):
        group = "docker"
    return (
        f"the socket belongs to group {group}: add this user to it (`sudo usermod -aG {group} $USER`; its members "
        "can do what root can do on this machine) and log in again, or use a rootless engine"
    )


def _words(error: BaseException) -> str:
    if isinstance(error, docker.errors.APIError) and error.explanation:
        return str(error.explanation)
    return str(error) or type(error).__name__


def _causes(error: BaseException, depth: int = 0) -> Iterator[BaseException]:
    """Yield an error and the errors inside it, down to the operating system's error."""
    if depth > 8:
        return
    yield error
    for inner in (*error.args, error.__cause__, error.__context__):
        if isinstance(inner, BaseException):
            yield from _causes(inner, depth + 1)


def _is_socket(place: Path) -> bool:
    try:
        return place.is_socket()
    except OSError:
        return False


def _tls_context(client: docker.APIClient) -> ssl.SSLContext:
    """Return docker-py's TLS settings: its CA (none if it does not verify the engine), and its client certificate."""
    authority = client.verify if isinstance(client.verify, str) else None
    context = ssl.create_default_context(cafile=authority)
    if client.verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if isinstance(client.cert, tuple):
        context.load_cert_chain(*client.cert)
    return context
