"""The tools that every host needs: Node, esbuild, the built JavaScript runner, and Python packages for sandboxes.

Node and npm come with the host's own dependencies. npm installs esbuild once, from a lock with hashes, into a temporary
folder, which is then renamed. So a killed host does not leave an incomplete tool.
"""

import hashlib
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR, system_ca_file
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.sandbox.commands import find_shell_tools
from evaluator_host.engine.sandbox.runtimes import added_files, runtimes_dir
from evaluator_host.engine.system.files import FileLock, hold_lock
from evaluator_host.engine.system.processes import Command, bound, run
from evaluator_host.engine.system.tree import remove
from evaluator_host.types.errors import IndexUnavailable, MachineExhausted, SandboxUnavailable, refusal_of

_log = logging.getLogger(__name__)

_JAVASCRIPT: Final = RUNTIMES_DIR / "javascript"
_RECIPE: Final = _JAVASCRIPT / "toolchain"
_RUNNER: Final = "javascript-runner-"
_SHELL: Final = "shell-"
_DIGEST: Final = "digest"  # name of the file in a built runner that contains a digest of the other files
_KEPT: Final[dict[Path, FileLock]] = {}
_PYTHON_PACKAGES: Final = ("RestrictedPython", "jedi", "parso", "pyflakes")
# names of folders that are not copied; `stubs` contains typeshed
_LEFT_OUT: Final = ("__pycache__", "tests", "test", "stubs", "django-stubs")
_INSTALL_TIMEOUT_S: Final = 300.0
_OUTPUT_CHARS: Final = 1500
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_UNREACHABLE: Final = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|"
    r"E40[1347]|E429|E5\d\d|ENOTCACHED|UNABLE_TO_\w+|SELF_SIGNED_\w+|CERT_\w+|DEPTH_ZERO_\w+)\b"
)


def node_path() -> Path:
    """Return the path of the Node program that is installed with this host's dependencies.

    Raises:
      SandboxUnavailable: Node is not installed.
    """
    node = installed_tools().node
    if not node.is_file():
        raise SandboxUnavailable(f"Node is missing at {node}; reinstall the host's dependencies (`make setup`)")
    return node


class JavascriptTools:
    """Installs esbuild and builds the JavaScript runner in a data directory when JavaScript is first needed."""

    def __init__(self, data_dir: Path) -> None:
        self.esbuild = esbuild_path(data_dir)  # path of the program, whether or not it is there yet
        self.runner = javascript_runner_path(data_dir)  # the folder where the built runner is, or will be
        self._data_dir = data_dir
        self._whole = False

    async def ensure(self) -> None:
        """Install esbuild and build the runner unless they are there; later calls return at once.

        Raises:
          IndexUnavailable: npm cannot reach its registry.
          SandboxUnavailable: npm failed for another reason, or esbuild or the runner does not work here.
        """
        if not self._whole:
            await ensure_javascript_runner(self._data_dir)
            self._whole = True


def javascript_runner_path(data_dir: Path) -> Path:
    """Return the path for the built JavaScript runner in a data directory; the folder may not exist yet."""
    return data_dir / "toolchain" / f"{_RUNNER}{_sources_digest()[:16]}"


async def ensure_javascript_runner(data_dir: Path) -> Path:
    """Return the folder of the built JavaScript runner; build it, and install esbuild, on the first call.

    No sandbox may write to this folder, because V8 runs the compiled code in it without checks.

    Raises:
      IndexUnavailable: npm cannot reach its registry.
      SandboxUnavailable: npm or the build failed.
    """
    esbuild = await ensure_esbuild(data_dir)
    home, target = data_dir / "toolchain", javascript_runner_path(data_dir)
    with _prepared_in(home):
        _keep(target)
        if not _is_unchanged(target):
            async with hold_lock(home / ".lock"):
                if not _is_unchanged(target):
                    damaged = target.exists()
                    with _staging(home) as stage:
                        made = Path(stage, "kept")
                        await _build_runner(esbuild, made, runtimes_dir(data_dir) / "javascript")
                        _rename(made, target, replaced=damaged)
    return target


def _keep(folder: Path) -> None:
    lock = _KEPT.setdefault(folder, FileLock(folder.with_name(f"{folder.name}.lock")))
    with suppress(OSError):  # this process may not be allowed to write to the folder
        lock.acquire(shared=True, wait=True)


def remove_old_tools(data_dir: Path) -> int:
    """Remove other versions of the JavaScript runner and the shell tools that no process uses; return how many.

    A folder without a lock file stays: it may be in use by an old version of the host, which did not lock it.
    """
    own, removed = javascript_runner_path(data_dir), 0
    for path in (path for kind in (_RUNNER, _SHELL) for path in own.parent.glob(f"{kind}*.lock")):
        folder, lock = path.with_suffix(""), FileLock(path)
        try:
            if folder != own and folder not in _KEPT and lock.acquire():
                removed += remove(folder)
                lock.discard()
        except OSError as error:
            _log.warning("%s could not be removed: %s", folder, error)
        finally:
            lock.release()
    return removed


async def _build_runner(esbuild: Path, made: Path, sources: Path) -> None:
    program = sources / "toolchain" / "build.mjs"
    code, output = await _run((str(node_path()), str(program), str(esbuild), str(made)), made.parent)
    if code != 0:
        raise SandboxUnavailable(f"the JavaScript runner could not be built: {output[-_OUTPUT_CHARS:].strip()}")
    _seal(made)


def _seal(made: Path) -> None:
    for path in made.iterdir():
        path.chmod(0o644)  # let every user read the file, whatever the umask is
    (made / _DIGEST).write_text(_contents_digest(made), "utf-8")


def _is_unchanged(folder: Path) -> bool:
    try:
        everyone = all(path.stat().st_mode & stat.S_IROTH for path in folder.iterdir())
        return everyone and (folder / _DIGEST).read_text("utf-8") == _contents_digest(folder)
    except (OSError, UnicodeDecodeError):
        return False


def _contents_digest(folder: Path) -> str:
    return _digest_of([path for path in folder.iterdir() if path.name != _DIGEST], folder)


@cache
def _sources_digest() -> str:
    """Return a digest of what the built runner depends on: its sources, the platform, and the size of Node.

    The size shows whether Node is another version, which could not read the runner's compiled code.
    """
    paths = [path for path in _JAVASCRIPT.rglob("*") if path.is_file() and "node_modules" not in path.parts]
    added = (f"{name} {path.read_text('utf-8')}" for name, path in added_files() if name.startswith("javascript/"))
    return _digest_of(paths, _JAVASCRIPT, str(node_path().stat().st_size), _platform(), *added)


def _digest_of(paths: Iterable[Path], root: Path, *also: str) -> str:
    whole = hashlib.sha256("\0".join(also).encode())
    for path in sorted(paths):
        whole.update(f"{path.relative_to(root)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def esbuild_path(data_dir: Path) -> Path:
    """Return the path for the pinned esbuild in a data directory; the file may not exist yet."""
    return data_dir / "toolchain" / f"esbuild-{_esbuild_version()}-{_platform()}" / "esbuild"


async def ensure_esbuild(data_dir: Path) -> Path:
    """Return the path of the pinned esbuild; install it on the first call.

    Raises:
      IndexUnavailable: npm cannot reach its registry.
      SandboxUnavailable: npm failed for another reason, or the program it installed does not run here.
    """
    home = data_dir / "toolchain"
    binary = esbuild_path(data_dir)
    target = binary.parent
    with _prepared_in(home):
        if await _is_whole(binary):
            return binary
        async with hold_lock(home / ".lock"):
            if not await _is_whole(binary):
                if damaged := target.exists():
                    _log.warning("%s does not run, and is being installed again", binary)
                with _staging(home) as stage:
                    await _install_esbuild(Path(stage), binary)
                    _rename(Path(stage, "kept"), target, replaced=damaged)
    return binary


async def _is_whole(binary: Path) -> bool:
    try:
        everyone = os.stat(binary).st_mode & stat.S_IXOTH  # noqa: PTH116 - takes microseconds
        code, output = await _run((str(binary), "--version"), binary.parent)
    except OSError as error:
        if MachineExhausted.cause_of(error) is not None:  # the machine, not the program, is at fault
            raise
        return False
    return bool(everyone) and code == 0 and output.strip() == _esbuild_version()


@contextmanager
def _prepared_in(home: Path) -> Iterator[None]:
    """Turn `OSError` in the `with` block into an error with advice.

    Raises:
      SandboxUnavailable: the operating system refused something; the detail says what to do.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        if os.statvfs(home).f_flag & os.ST_NOEXEC:
            raise SandboxUnavailable(
                f"no program can run in {home}, because its file system is mounted noexec. Mount it with exec, or "
                "choose another data directory (--data-dir or EVALUATOR_HOST_DATA_DIR)"
            )
        yield
    except OSError as error:
        raise SandboxUnavailable(f"the tools of sandboxes cannot be stored in {home}: {refusal_of(error)}") from error


def watch_tools(data_dir: Path) -> Callable[[], None]:
    """Return a function that raises `SandboxUnavailable` when Node, esbuild or the JavaScript runner has changed.

    The function compares sizes and times of the files, which takes microseconds.
    """
    runner = javascript_runner_path(data_dir) / "runner.js"
    if runner.exists():
        _keep(runner.parent)
    known = {path: _facts(path) for path in (node_path(), esbuild_path(data_dir), runner, *runner.parent.glob("*"))}

    def check() -> None:
        for path, facts in known.items():
            now = _facts(path)
            if facts is None:
                known[path] = now
            elif now != facts:
                raise SandboxUnavailable(
                    f"{path} was removed or changed while this host ran, so JavaScript or TypeScript may not work: "
                    "start the host again; it then checks the file"
                )

    return check


def _facts(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def restricted_python_dir(data_dir: Path) -> Path:
    """Return a folder with copies of RestrictedPython for sandboxes, and of jedi and pyflakes, which help editors."""
    try:
        releases = [f"{name.lower()}-{version(name)}" for name in _PYTHON_PACKAGES]
    except PackageNotFoundError as error:
        raise SandboxUnavailable(f"{error.name} is missing; reinstall the host's dependencies") from error
    home = data_dir / "toolchain"
    target = home / "-".join(releases)
    with _prepared_in(home):
        if not all((target / name / "__init__.py").is_file() for name in _PYTHON_PACKAGES):
            damaged = target.exists()
            with _staging(home) as stage:
                kept = Path(stage, "kept")
                for name in _PYTHON_PACKAGES:
                    shutil.copytree(_package_dir(name), kept / name, ignore=shutil.ignore_patterns(*_LEFT_OUT))
                _rename(kept, target, replaced=damaged)
    return target


def shell_tools_dir(data_dir: Path) -> Path | None:
    """Return a folder with copies of this machine's shell and text tools, or None if the machine has no shell."""
    found = dict(find_shell_tools())
    if not found:
        return None
    home = data_dir / "toolchain"
    target = home / f"{_SHELL}{_facts_digest(found)[:16]}"
    with _prepared_in(home):
        _keep(target)
        if not target.is_dir():
            with _staging(home) as stage:
                _copy_programs(found, Path(stage, "kept"))
                _rename(Path(stage, "kept"), target, replaced=False)
    return target


def _facts_digest(programs: Mapping[str, Path]) -> str:
    facts = [(name, str(path), _facts(path)) for name, path in programs.items()]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _copy_programs(programs: Mapping[str, Path], folder: Path) -> None:
    folder.mkdir()
    copies: dict[Path, Path] = {}
    for name, path in programs.items():
        target = folder / name
        if path in copies:
            target.hardlink_to(copies[path])
        else:
            copies[path] = Path(shutil.copyfile(path, target))
            target.chmod(0o755)


async def _install_esbuild(stage: Path, binary: Path) -> None:
    """Install esbuild below `stage`, check that it runs, and leave its program at `kept/esbuild`.

    Error messages contain `binary`, the final path of esbuild.
    """
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_RECIPE / name, stage / name)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    patience = ["--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=5000"]
    command = (*installed_tools().npm_command, "ci", *options, *patience, f"--cache={stage / 'cache'}")
    code, output = await _run(command, stage)
    if code != 0:
        _raise_npm_failure(output, binary)
    made = stage / "kept" / "esbuild"
    made.parent.mkdir()
    shutil.copy(stage / "node_modules" / "@esbuild" / _platform() / "bin" / "esbuild", made)
    made.chmod(0o755)
    code, output = await _run((str(made), "--version"), stage)
    if code != 0 or output.strip() != _esbuild_version():
        raise SandboxUnavailable(f"the esbuild that npm installed does not run here: {output[-_OUTPUT_CHARS:].strip()}")


def _raise_npm_failure(output: str, binary: Path) -> None:
    reason = output[-_OUTPUT_CHARS:].strip()
    if _UNREACHABLE.search(output):
        raise IndexUnavailable(
            f"{binary} is missing or damaged, and npm could not fetch it from its registry: {reason}\n"
            "Without it, this host cannot run JavaScript and TypeScript. Check the network, or point npm to a "
            "registry or proxy that answers (`npm config set registry …`, HTTPS_PROXY), and start again"
        )
    raise SandboxUnavailable(f"npm could not install esbuild: {reason}")


async def _run(argv: tuple[str, ...], cwd: Path) -> tuple[int, str]:
    """Run a program with this host's environment variables (npm's settings), and return its exit code and output."""
    try:
        finished = await run(Command(bound(argv), cwd, {**os.environ, **_authorities()}), _INSTALL_TIMEOUT_S)
    except TimeoutError:
        return 1, f"ETIMEDOUT: {argv[0]} did not end within {_INSTALL_TIMEOUT_S:g} s"
    return finished.code, finished.stdout + finished.stderr


def _authorities() -> dict[str, str]:
    """Return the environment variable that makes Node trust the host's additional certificate authorities, if any."""
    named = os.environ.get("EVALUATOR_HOST_CA_FILE") or system_ca_file()
    return {"NODE_EXTRA_CA_CERTS": str(named)} if named and "NODE_EXTRA_CA_CERTS" not in os.environ else {}


def _staging(home: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=".stage-", dir=home, ignore_cleanup_errors=True)


def _rename(made: Path, target: Path, *, replaced: bool) -> None:
    """Rename `made` to `target`, unless another process was faster.

    If `replaced`, move the damaged `target` out of the way first.
    """
    made.chmod(0o755)  # the umask may forbid others to read, and sandboxes read as another user
    if replaced:
        with suppress(OSError):
            target.rename(made.with_name("damaged"))
    try:
        os.rename(made, target)  # noqa: PTH104 - Path.rename does not document that it refuses existing folders
    except OSError:
        if not target.is_dir():
            raise


@cache
def _esbuild_version() -> str:
    recipe = json.loads((_RECIPE / "package.json").read_text("utf-8"))
    return str(recipe["dependencies"]["esbuild"])


def _platform() -> str:
    """Return npm's name for this platform, such as `linux-x64` or `darwin-arm64`."""
    machine = platform.machine().lower()
    if machine not in _MACHINES or sys.platform not in {"linux", "darwin"}:
        raise SandboxUnavailable(
            f"JavaScript evaluators are not supported on {sys.platform} {machine}; "
            "run the host on an x64 or arm64 machine"
        )
    return f"{sys.platform}-{_MACHINES[machine]}"


def _package_dir(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SandboxUnavailable(f"{name} is missing; reinstall the host's dependencies (`make setup`)")
    return Path(spec.origin).parent
