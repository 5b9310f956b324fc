"""Where packages are downloaded and installed: a sandbox that has network and no file of this host but the tools.

Where bubblewrap does not work the same commands run as plain child processes. They run no code of any package (wheels
only, no install scripts), and source builds are refused.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from evaluator_host.errors import Misconfigured, SandboxUnavailable
from evaluator_host.packages import tools as processes
from evaluator_host.packages.tools import Command, Finished, Tools, installed_tools
from evaluator_host.sandbox.bubblewrap_doctor import find_bubblewrap
from evaluator_host.sandbox.host_files import PYTHON_HOME, base_executable, find_libraries, find_python

_log = logging.getLogger(__name__)

_TRY_S: Final = 20.0
_NAME_SERVICE: Final = tuple(
    Path("/etc", name) for name in ("resolv.conf", "hosts", "nsswitch.conf", "passwd", "group", "gai.conf")
)
_COMPILERS: Final = tuple(Path(name) for name in ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives"))
# Limits of every process of a build, the mode of what it writes, and (where there is no sandbox) its end with the host.
_ENTER: Final = """
import os, resource, sys
os.umask(0o022)
megabytes, bound = int(sys.argv[1]), sys.argv[2] == "bound"
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes << 20,) * 2)
if bound:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Builder:
    """Runs uv and npm for one host.

    Args:
      home: The one folder that builds may write to, downloads and staging together: files are shared by hard links,
        which cannot cross a mount.
      ca_file: As in `IndexSettings`.
      file_mb: Greatest file that a build may write.
    """

    def __init__(self, home: Path, *, ca_file: Path | None, file_mb: int) -> None:
        self.home = home
        self.tools = replace(installed_tools(), python=base_executable())
        self._ca_file = ca_file
        self._file_mb = file_mb
        self._bubblewrap: asyncio.Task[Path | None] | None = None

    async def run(
        self, command: Command, timeout_s: float, *, also: Sequence[Path] = (), sources: bool = False
    ) -> Finished:
        """Run a command to its end with nothing left of it, as `packages.tools.run` does.

        Args:
          command: Its working directory is writable, and so is the builder's home.
          timeout_s: For the whole command.
          also: Further folders it may write to.
          sources: It may run code of packages; it sees the machine's compilers.

        Raises:
          Misconfigured: it may run code of packages, and there is no sandbox for that here.
        """
        bubblewrap = await self._find()
        entered = self._entered(command, bound=bubblewrap is None)
        if bubblewrap is None:
            if sources:
                raise Misconfigured("Source builds need bubblewrap: install it, or turn allow_source_builds off.")
            return await processes.run(entered, timeout_s)
        writable = [self._writable(sources=sources), command.cwd, *also]
        arguments = builder_args(self.tools, writable=writable, ca_file=self._ca_file, compilers=sources)
        environment = dict(command.environment)
        if (library_path := find_python().library_path) is not None:
            environment["LD_LIBRARY_PATH"] = str(_own(library_path))
        wrapped = (str(bubblewrap), *arguments, "--chdir", str(command.cwd), "--", *entered.argv)
        return await processes.run(Command(wrapped, command.cwd, environment), timeout_s)

    def _writable(self, *, sources: bool) -> Path:
        """Code of packages must not reach the downloads of others: installed sets share files with them."""
        folder = self.home / "downloads" / "builder" if sources else self.home
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def run_sources(self, command: Command, timeout_s: float) -> Finished:
        """Run a command that may run code of packages: what `packages.lock.resolve` takes as its builder."""
        return await self.run(command, timeout_s, sources=True)

    def _entered(self, command: Command, *, bound: bool) -> Command:
        enter = (str(self.tools.python), "-I", "-S", "-c", _ENTER, str(self._file_mb), "bound" if bound else "free")
        return replace(command, argv=(*enter, *command.argv))

    async def _find(self) -> Path | None:
        if self._bubblewrap is None:
            self._bubblewrap = asyncio.ensure_future(self._try())
        return await asyncio.shield(self._bubblewrap)

    async def _try(self) -> Path | None:
        """Return bubblewrap when a builder sandbox really starts."""
        try:
            path = (await find_bubblewrap()).path
        except SandboxUnavailable:
            return None
        arguments = builder_args(self.tools, writable=[self.home], ca_file=self._ca_file)
        probe = (str(path), *arguments, "--", str(self.tools.uv), "--version")
        try:
            finished = await processes.run(Command(probe, self.home, {}), _TRY_S)
        except (OSError, TimeoutError):
            return None
        if finished.code != 0:
            _log.warning("packages are installed without a builder sandbox: %s", finished.stderr.strip()[:300])
        return path if finished.code == 0 else None


def builder_args(tools: Tools, *, writable: Sequence[Path], ca_file: Path | None, compilers: bool = False) -> list[str]:
    """Return bubblewrap's arguments for a build: everything of its own but the network.

    Every file keeps its path, because uv and npm are told paths of this host.
    """
    return [
        *("--unshare-user", "--uid", "65534", "--gid", "65534", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
        *("--unshare-cgroup", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "builder"),
        *("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108
        *_tool_binds(tools, compilers=compilers),
        *(part for path in _NAME_SERVICE if path.is_file() for part in _read_only(path)),
        *(_read_only(ca_file) if ca_file is not None and ca_file.is_file() else ()),
        *(part for path in writable for part in ("--bind", str(path), str(path))),
    ]


def _tool_binds(tools: Tools, *, compilers: bool) -> Iterator[str]:
    if compilers:
        yield from (part for path in _COMPILERS if path.is_dir() and not path.is_symlink() for part in _read_only(path))
        for path in _COMPILERS:
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), str(path))
    else:
        libraries = find_libraries()
        for bind in libraries.binds:
            yield from ("--ro-bind", str(bind.source), str(bind.target))
        for source, target in libraries.links:
            yield from ("--symlink", source, str(target))
    python = find_python()
    for bind in python.binds:
        yield from _read_only(bind.source)
    for folder in python.masked:
        yield from ("--tmpfs", str(_own(folder)))
    for tool in (tools.uv, tools.node, tools.npm):
        yield from _read_only(tool)


def _own(path: Path) -> Path:
    """Return where a path of a sandbox's interpreter lies on this host."""
    if path.is_relative_to(PYTHON_HOME):
        return Path(sys.base_prefix).resolve() / path.relative_to(PYTHON_HOME)
    return path


def _read_only(path: Path) -> tuple[str, str, str]:
    return "--ro-bind", os.path.realpath(path), str(path)
