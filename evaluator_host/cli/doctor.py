"""`doctor` reports what works on this machine, and how to fix the rest.

`setup` installs tools. `images build` makes the image for containers.
"""

import asyncio
import contextlib
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from evaluator_host.cli.serve import listen, require_descriptors
from evaluator_host.engine.backends import (
    backend_findings,
    build_images,
    builder_findings,
    machine_pythons,
)
from evaluator_host.engine.config.settings import UNIT_FILE, SandboxChoice, Settings, unknown_variables
from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.packages.index import require_authorities
from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.sandbox.pythons import own_python, require_glibc
from evaluator_host.engine.sandbox.trial_start import TRIED
from evaluator_host.platform.findings import database_findings
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_found, print_json
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.errors import (
    HostError,
    HostUnreachable,
    InvalidRequest,
    Misconfigured,
    Unauthorized,
    refusal_of,
)

_WIRES: Final[EntryPoint[Any]] = EntryPoint("evaluator_host.platform.wires.routes:wire_findings")
_NOT_WORKING: Final = 3
# checks that must succeed, because otherwise no host starts
_NEEDED: Final = ("data directory", "database", "open files")
_PARTS: Final = ("toolchain", "environments", "datasets", "filesets", "databases", "backups")
_USER_LINE: Final = "User=evaluator-host\n"
_DOCKER_SOCKET: Final = "/var/run/docker.sock"
_DOCKER_GROUP: Final = "docker"  # group that owns Docker's socket if Docker was installed from packages
_ADD_USER: Final = "systemd-sysusers --inline 'u evaluator-host -'"
_TRIED_BYTES: Final = 1 << 20
_ANSWERS_S: Final = 30.0  # seconds to wait for `/readyz`, because a host may first have to start a sandbox
app = typer.Typer(name="images", no_args_is_help=True)


def doctor(*, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False) -> None:
    """Check this machine and say how to fix problems. Exit 3 when a host cannot start or no backend works."""
    settings = load_settings(data_dir=data_dir)
    found = run_async(lambda: examine(settings))
    chosen = settings.sandbox in (SandboxChoice.BUBBLEWRAP, SandboxChoice.DOCKER)
    serving = next((name for name in ([settings.sandbox] if chosen else found) if is_working(found[name])), None)
    works = serving is not None
    broken = [finding.name for finding in found["host"] if finding.name in _NEEDED and not finding.ok]
    if as_json:
        print_json({"ok": works and not broken, "findings": found})
    else:
        out.print(_table(found, serving=serving))
        if broken:
            out.print(f"\nNo host can start here: fix the {' and the '.join(broken)}.")
        if not works:
            what = (
                f"The backend {settings.sandbox} does not work, so no evaluator can run: fix it, or choose another "
                "with EVALUATOR_HOST_SANDBOX."
                if chosen
                else "No backend works, so no evaluator can run: fix one of them."
            )
            out.print(f"\n{what}")
    raise typer.Exit(0 if works and not broken else _NOT_WORKING)


async def examine(settings: Settings) -> dict[str, list[Finding]]:
    """Return the findings on the machine (`host`), on each backend, and on how packages are installed."""
    found = {"host": [*await _tools(settings), _data_dir(settings.data_dir)]}
    found["host"] += [Finding("settings", ok=False, detail=problem) for problem in unknown_variables()]
    found["host"].append(_checked("open files", lambda: f"up to {require_descriptors()} at once"))
    found["host"].append(_checked("CA file", lambda: _authorities(settings)))
    found["host"] += [*await database_findings(settings), _port(settings), *_WIRES.load()(settings)]
    return {**found, **await backend_findings(settings), "packages": await builder_findings(settings)}


def is_working(findings: Iterable[Finding]) -> bool:
    """Return whether a backend started a sandbox of each kind. Its other problems do not count."""
    tried = [finding.ok for finding in findings if finding.name.endswith(TRIED)]
    return bool(tried) and all(tried)


def _checked(name: str, check: Callable[[], str]) -> Finding:
    """Run a check. Return a finding with the text that the check returned, or with the error that it raised."""
    try:
        return Finding(name, ok=True, detail=check())
    except Misconfigured as error:
        return Finding(name, ok=False, detail=error.detail)


async def _tools(settings: Settings) -> list[Finding]:
    found = [Finding("python", ok=True, detail=f"{platform.python_version()} at {sys.executable}")]
    others = await asyncio.to_thread(_other_pythons, settings)
    found.append(
        Finding("other pythons", ok=True, detail=others or "none; evaluators that ask for another version are refused")
    )
    try:
        tools = await _prepare_tools(settings)
    except HostError as error:
        return [*found, Finding("tools", ok=False, detail=error.detail)]
    return found + [Finding(name, ok=True, detail=where) for name, where in tools.items()]


async def _prepare_tools(settings: Settings) -> dict[str, str]:
    """Install the tools of sandboxes that are missing. Return the path of each tool."""
    node, runner = toolchain.node_path(), await toolchain.ensure_javascript_runner(settings.data_dir)
    return {
        "node": str(node),
        "esbuild": str(toolchain.esbuild_path(settings.data_dir)),
        "JavaScript runner": str(runner),
        "RestrictedPython": str(toolchain.restricted_python_dir(settings.data_dir)),
        "shell": str(toolchain.shell_tools_dir(settings.data_dir) or "none on this machine"),
    }


def _other_pythons(settings: Settings) -> str:
    pythons, own = machine_pythons(settings), own_python().minor
    others = (pythons.find_version(minor) for minor in pythons.minors() if minor != own)
    return ", ".join(f"{facts.version} at {facts.executable}" for facts in others if facts is not None)


def _data_dir(path: Path) -> Finding:
    try:
        path.mkdir(parents=True, exist_ok=True)
        for folder in (path, *(path / name for name in _PARTS if os.path.lexists(path / name))):
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(_TRIED_BYTES))
    except OSError as error:
        fix = "make it writable, or choose another folder with --data-dir or EVALUATOR_HOST_DATA_DIR"
        return Finding("data directory", ok=False, detail=f"{path} cannot be used: {refusal_of(error)}", fix=fix)
    if path.stat().st_mode & stat.S_IWOTH:
        detail = f"every user of this machine can change {path}, where the host's keys and database are"
        return Finding("rights", ok=False, detail=detail, fix=f"chmod o-w {path}")
    return Finding("data directory", ok=True, detail=f"{path} is writable")


def _authorities(settings: Settings) -> str:
    if settings.ca_file is None:
        return "no CA file is set, so the public certificate authorities are trusted"
    require_authorities(settings.ca_file)
    return f"{settings.ca_file}, in addition to the public certificate authorities"


def _port(settings: Settings) -> Finding:
    name = f"port {settings.port}"
    try:
        listen(settings.host, settings.port).close()
    except Misconfigured as error:
        if (running := _running_host(settings, name)) is not None:
            return running
        fix = "choose another port (EVALUATOR_HOST_PORT), or stop the program that listens there; only `serve` needs it"
        return Finding(name, ok=False, detail=f"{error.detail} (no Evaluator Host answers there)", fix=fix)
    return Finding(name, ok=True, detail=f"free on {settings.host}")


def _running_host(settings: Settings, name: str) -> Finding | None:
    """Return a finding (`name`) about the host at the settings' address and port, or None if no host answers there."""
    from evaluator_host.platform.terminal.remote_host import host  # noqa: PLC0415 - httpx, which few commands need

    address = f"[{settings.host}]" if ":" in settings.host else settings.host
    version = "it needs a key"
    try:
        with host(f"http://{address}:{settings.port}", timeout_s=_ANSWERS_S) as client:
            client.ready()
            with contextlib.suppress(Unauthorized):
                version = client.info().version
    except HostUnreachable:
        return None
    except HostError as error:
        return Finding(name, ok=False, detail=f"the Evaluator Host there is not ready: {error.detail}")
    return Finding(name, ok=True, detail=f"an Evaluator Host runs there ({version})")


def _table(found: dict[str, list[Finding]], *, serving: str | None) -> Text:
    """Return a table of all findings.

    `serving` is the name of a backend that works, or None. If one works, faults of the other backends do not matter.
    """
    made = Text()
    width = max(len(finding.name) for findings in found.values() for finding in findings)
    for name, findings in found.items():
        spare = serving not in (None, name) and name in set(SandboxChoice) and not is_working(findings)
        made.append(f"{name}{f' (not needed: {serving} works)' if spare else ''}\n", style="bold")
        for finding in findings:
            mark, style = ("ok", "green") if finding.ok else ("--", "dim") if spare else ("NO", "bold red")
            made.append(f"  {mark}", style=style).append(f"  {finding.name:<{width}}  {plain(finding.detail)}\n")
            if finding.fix and not finding.ok:
                made.append(f"{'':<{width + 8}}to {'use' if spare else 'fix'} it: {plain(finding.fix)}\n")
    made.rstrip()
    return made


@app.callback()
def _images() -> None:
    """Make typer treat `images` as a group, although it has only one command."""


@app.command()
def build(
    *,
    base: Annotated[
        str | None,
        typer.Option(help="Base image.", show_default="Debian trixie, pulled or, if that fails, bootstrapped"),
    ] = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Build the runtime image of the docker backend; takes minutes the first time."""
    settings = load_settings(data_dir=data_dir)
    tag = run_async(lambda: build_images(settings, base=base, progress=lambda line: err.print(plain(line))))
    print_found({"image": tag}, lambda made: plain(f"built {made['image']}"), as_json=as_json)


def setup(*, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False) -> None:
    """Install the pinned tools that sandboxes need. Tools that are already installed are not changed."""
    settings = load_settings(data_dir=data_dir)
    require_glibc()
    tools = run_async(lambda: _prepare_tools(settings))
    print_found(tools, lambda made: "\n".join(plain(f"{name} {path}") for name, path in made.items()), as_json=as_json)


def install_service(
    *,
    to: Annotated[Path, typer.Option("--unit", help="Path of the systemd unit file to write.")] = Path(
        "/etc/systemd/system/evaluator-host.service"
    ),
    only_print: Annotated[bool, typer.Option("--print", help="Print the unit file instead of writing it.")] = False,
    sandbox: options.SandboxOption = None,
) -> None:
    """Write a systemd unit that runs this installation as a separate user with few rights.

    With `--sandbox docker`, this user is in the group that may use the Docker engine.
    """
    command = f"{sys.executable} -m evaluator_host"
    unit = UNIT_FILE.read_text().replace("@COMMAND@", command)
    settings = load_settings(sandbox=sandbox)
    group = _engine_group(settings) if settings.sandbox is SandboxChoice.DOCKER else None
    if group is not None:
        more = f"SupplementaryGroups={group}\nEnvironment=EVALUATOR_HOST_SANDBOX={settings.sandbox}\n"
        unit = unit.replace(_USER_LINE, f"{_USER_LINE}{more}", 1)
    if only_print:
        typer.echo(unit, nl=False)
        return
    try:
        replaced = to.exists() and to.read_text() != unit
        to.write_text(unit)
    except OSError as error:
        raise InvalidRequest(f"cannot write {to}: {error.strerror}. Run this as root, or use --print") from error
    start = f"{_ADD_USER} && systemctl daemon-reload && systemctl enable --now {to.stem}"
    if replaced:
        err.print(
            plain(f"replaced another {to}; for a running service, `systemctl restart {to.stem}` applies the new one")
        )
    err.print(plain(f"wrote {to}; now create the service's user and start the service: {start}"))
    if group is not None:
        err.print(plain(f"the service may use the Docker engine, as a member of {group}, so it has the rights of root"))
    for program in (Path(sys.executable).resolve(), Path(sys.prefix).resolve(), UNIT_FILE.resolve()):
        if (closed := _closed(program)) is not None:
            err.print(
                plain(
                    f"the service cannot start yet: its user cannot reach {program}, because {closed} is closed to "
                    "other users; install Evaluator Host below /opt, with a Python that every user can run"
                )
            )
            break


def _closed(path: Path) -> Path | None:
    """Return the path that other users cannot enter: a folder above `path`, or `path` itself. None if there is none."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None if path.stat().st_mode & stat.S_IROTH else path


def _engine_group(settings: Settings) -> str:
    """Return the group that may use the Docker engine: the group of the engine's socket, or else `docker`."""
    socket = Path((settings.engine_address or f"unix://{_DOCKER_SOCKET}").removeprefix("unix://"))
    return socket.group() if socket.is_socket() and socket.stat().st_gid else _DOCKER_GROUP
