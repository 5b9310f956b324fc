"""Finds the files of this machine that a sandbox needs: interpreter, standard library, C libraries, files for DNS."""

import contextlib
import os
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.engine.config.settings import system_ca_file
from evaluator_host.engine.sandbox.pythons import PythonFacts, own_python, run_python

PYTHON_HOME: Final = Path("/opt/python")  # where a sandbox has an interpreter that is not in /usr on the host
RUNNER_HOME: Final = Path("/opt/runner")
# maximum number of libraries to bind one by one; if there are more, as with conda, the whole folder is bound
_FEW_LIBRARIES: Final = 8
_LIBRARY_FOLDERS: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_LOADERS: Final = ("ld-linux*.so.*", "ld64.so.*")

# header of a byte code file: magic number, flags, modification time and size of the source
_HEADER: Final = struct.Struct("<4s3L")

_CERTIFICATES: Final = "ssl/certs/ca-certificates.crt"
_BUNDLES: Final = (
    _CERTIFICATES,  # path in Debian and Arch
    "pki/tls/certs/ca-bundle.crt",  # path in Fedora
    "ssl/ca-bundle.pem",  # path in SUSE
    "ssl/cert.pem",
)


@dataclass(frozen=True, slots=True)
class Bind:
    """A host file or folder, and its read-only path in a sandbox."""

    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class HostPython:
    """The host's base Python interpreter, and where a sandbox sees its files."""

    executable: Path  # path inside the sandbox
    binds: tuple[Bind, ...]  # the interpreter, its standard library, and its own shared libraries
    # folders of the interpreter with the host's third-party packages; they look empty in a sandbox
    masked: tuple[Path, ...]
    library_path: Path | None  # value of LD_LIBRARY_PATH, if the interpreter's run path names a folder of the host


@dataclass(frozen=True, slots=True)
class HostLibraries:
    """The C libraries: folders and loaders to mount, and symbolic links to them (`/lib` → `usr/lib`)."""

    binds: tuple[Bind, ...]
    links: tuple[tuple[str, Path], ...]


def find_python(facts: PythonFacts | None = None) -> HostPython:
    """Return an interpreter of this machine, and where a sandbox sees its files.

    Args:
      facts: Facts about the interpreter; None for the base interpreter of this process.

    Raises:
      Misconfigured: the interpreter's program is not in its own prefix.
    """
    facts = facts or own_python()
    prefix, executable = facts.prefix, facts.executable
    home = prefix if prefix == Path("/usr") else PYTHON_HOME
    sources = [executable, *_standard_library(facts)]
    if home == PYTHON_HOME:
        sources += _own_libraries(facts)
    sources = [one for one in sources if not any(one != other and one.is_relative_to(other) for other in sources)]
    binds = tuple(Bind(source, home / source.relative_to(prefix)) for source in sources)
    masked = tuple(home / folder.relative_to(prefix) for source in sources for folder in _third_party(source))
    shared = facts.shared and home == PYTHON_HOME
    return HostPython(home / executable.relative_to(prefix), binds, masked, home / "lib" if shared else None)


def base_executable() -> Path:
    """Return the path of the base interpreter's program.

    Raises:
      Misconfigured: the program is not in the interpreter's own prefix.
    """
    return own_python().executable


def find_libraries(root: Path = Path("/")) -> HostLibraries:
    """Return the folders of the C library and the loader.

    Args:
      root: Folder to search instead of the root directory.
    """
    binds: dict[Path, Bind] = {}
    links: list[tuple[str, Path]] = []
    for name in _LIBRARY_FOLDERS:
        target, folder = Path(name), root / name.lstrip("/")
        if folder.is_symlink():
            links.append((str(folder.readlink()), target))
        elif folder.is_dir():
            for bind in _libraries_in(folder, target):
                binds[bind.target] = bind
    return HostLibraries(tuple(binds.values()), tuple(links))


def _libraries_in(folder: Path, target: Path) -> Iterator[Bind]:
    if (folder / "libc.so.6").exists():
        yield Bind(folder, target)
        return
    for inner in sorted(folder.glob("*-linux-gnu*")):  # Debian has a folder for each processor type
        if (inner / "libc.so.6").exists():
            yield Bind(inner, target / inner.name)
    for pattern in _LOADERS:
        for loader in folder.glob(pattern):
            yield Bind(loader.resolve(), target / loader.name)


def _standard_library(facts: PythonFacts) -> list[Path]:
    return [
        folder
        for folder in facts.folders
        if folder.is_relative_to(facts.prefix) and ((folder / "os.py").is_file() or (folder / "lib-dynload").is_dir())
    ]


def _own_libraries(facts: PythonFacts) -> list[Path]:
    folder, wanted = facts.prefix / "lib", facts.library
    libraries = [f for f in sorted(folder.glob("lib*.so*")) if f.name == wanted or not f.name.startswith("libpython")]
    return libraries if len(libraries) <= _FEW_LIBRARIES else [folder]


def _third_party(source: Path) -> list[Path]:
    """Return the `site-packages` and `dist-packages` folders directly in a folder, or in one of its subfolders."""
    if not source.is_dir():
        return []
    names = ("site-packages", "dist-packages")
    return sorted(folder for name in names for level in ("", "*/") for folder in source.glob(level + name))


def compile_runner(folder: Path, python: PythonFacts) -> None:
    """Write byte code beside the Python runner if possible, so that sandboxes need not compile the runner.

    The byte code contains the paths of files in the sandbox, so that it reveals no path of the host. Byte code that
    imports on the host have written is replaced, because it contains the host's paths.
    """
    if not os.access(folder, os.W_OK):
        return
    here = f"{folder}/".encode()
    for compiled in folder.glob("**/*.pyc"):
        try:
            if here in compiled.read_bytes():
                compiled.unlink()
        except OSError:  # this process may not change the file, or another host has removed it
            continue
    if all(_is_compiled(file, python) for file in folder.glob("**/*.py")):
        return  # starting the compiler takes a sixth of the processor time that a host needs to start
    with contextlib.suppress(OSError, subprocess.SubprocessError):  # sandboxes compile the files that have no byte code
        command = ["-m", "compileall", "-qq", "-s", str(folder), "-p", str(RUNNER_HOME), str(folder)]
        run_python(python.executable, *command)


def _is_compiled(source: Path, python: PythonFacts) -> bool:
    """Return whether an interpreter would consider the byte code of a source file to be up to date."""
    compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-{python.minor.replace('.', '')}.pyc"
    try:
        now = source.stat()
        with compiled.open("rb") as file:
            _, *header = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return False
    return header == [0, int(now.st_mtime) & 0xFFFFFFFF, now.st_size & 0xFFFFFFFF]


def network_files(etc: Path = Path("/etc")) -> dict[str, bytes]:
    """Return the files under /etc of a sandbox with network, by name: name resolution and certificates.

    `nsswitch.conf` is not copied from the machine, because the machine's file may name modules that need services
    outside the sandbox.
    """
    bundles = (system_ca_file(), *(etc / name for name in _BUNDLES))
    bundle = next((file for file in bundles if file is not None and file.is_file()), None)
    return {
        "nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
        "hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n" + _read(etc / "hosts"),
        "resolv.conf": _read(etc / "resolv.conf"),
        _CERTIFICATES: b"" if bundle is None else _read(bundle),
    }


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""
