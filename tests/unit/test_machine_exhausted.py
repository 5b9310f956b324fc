"""If the machine lacks memory, descriptors or disk space, the error says so, and the host works afterwards."""

import asyncio
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from evaluator_host.engine.environments.build import command
from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.build.command import BuildSandbox, DiskWatch
from evaluator_host.engine.packages.index import IndexSettings, require_authorities, uv_workspace
from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.packages.npm import syntax
from evaluator_host.engine.packages.tools import Resolver
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.system.processes import Command, Finished
from evaluator_host.engine.system.tree import work_folder
from evaluator_host.platform.http.error_log import CutOff
from evaluator_host.platform.http.error_responses import install_error_handlers
from evaluator_host.platform.http.middleware import AccessMiddleware
from evaluator_host.platform.store.secrets import SecretBox
from evaluator_host.server import workers
from evaluator_host.types.errors import MachineExhausted, Misconfigured, StoreUnavailable
from evaluator_host.types.evaluator import Language

NO_DESCRIPTORS = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
WITHOUT_DESCRIPTORS = """
import os, resource, sys
from evaluator_host.engine.sandbox.linux.instance import is_dead, this_instance
before = this_instance()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 4096))
print(is_dead(sys.argv[1]), this_instance() == before)
"""
REFUSED = """
import resource, sys
from pathlib import Path
from evaluator_host.engine.packages.index import require_authorities
from evaluator_host.platform.store.secrets import SecretBox
from evaluator_host.types.errors import HostError
folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 4096))
try:
    {call}
except HostError as error:
    print(type(error).__name__, error.detail)
"""


def raising(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC, errno.EROFS, errno.ENOMEM])
def test_a_lack_of_the_operating_systems_resources_is_not_a_fault_of_the_host(number: int) -> None:
    found = MachineExhausted.cause_of(OSError(number, os.strerror(number)))
    assert found is not None
    assert os.strerror(number) in found.detail
    assert MachineExhausted.cause_of(FileNotFoundError(errno.ENOENT, "no such file")) is None


async def test_a_process_that_starts_on_a_read_only_disk_says_so() -> None:
    async def work(number: int) -> None:
        raise OSError(number, "refused")

    assert "refused" in str(await workers._refusal_of(work(errno.EROFS)))
    with pytest.raises(OSError, match="refused"):
        await workers._refusal_of(work(errno.EINVAL))


def test_a_process_without_descriptors_takes_no_other_for_dead() -> None:
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS, this_instance()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_a_disk_that_is_nearly_full_is_not_the_packages_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_RESERVE_MB", 1 << 40)
    reached = DiskWatch(tmp_path, limit_mb=1)._look(os.getpid())
    assert isinstance(reached, MachineExhausted)
    assert re.search(r"has \d+ MB left, and an installation must leave \d+ MB", reached.detail)


async def test_a_resolver_that_cannot_be_started_now_is_not_missing(tmp_path: Path) -> None:
    index = IndexSettings(cache_dir=tmp_path)
    resolver = Resolver(index, LockTarget(Language.PYTHON, "3.12.1", "x86_64-unknown-linux-gnu"))
    async with uv_workspace(index) as workspace:
        with pytest.raises(MachineExhausted):
            await replace(resolver, run=raising(NO_DESCRIPTORS)).attempt(("uv",), workspace)
        with pytest.raises(Misconfigured):
            await replace(resolver, run=raising(FileNotFoundError())).attempt(("/nowhere/uv",), workspace)
        # this program exists, so the error means that a file which the program needs was removed
        with pytest.raises(MachineExhausted):
            await replace(resolver, run=raising(FileNotFoundError())).attempt((sys.executable,), workspace)


@pytest.mark.parametrize(
    ("said", "is_machine"),
    [
        ("error: Could not acquire lock\n  cause: Read-only file system (os error 30) at path", True),
        ("npm error code ENOSPC\nnpm error syscall write", True),
        ("error: No such file or directory (os error 2)", False),
        ("npm error code ERESOLVE", False),
    ],
)
async def test_an_error_of_the_system_during_an_installation_is_not_blamed_on_a_package(
    said: str, is_machine: bool, tmp_path: Path
) -> None:
    async def run(command: Command, timeout_s: float) -> Finished:
        return Finished(2, "", said)

    index = IndexSettings(cache_dir=tmp_path)
    resolver = Resolver(index, LockTarget(Language.PYTHON, "3.12.1", "x86_64-unknown-linux-gnu"), run=run)
    async with uv_workspace(index) as workspace:
        if is_machine:
            with pytest.raises(MachineExhausted, match="install packages"):
                await resolver.attempt(("uv",), workspace)
        else:
            assert (await resolver.attempt(("uv",), workspace)).stderr == said


def refusal_without_descriptors(call: str, folder: Path) -> str:
    """Return the error of a call in a process that cannot open files.

    This is a new process, because in this process threads of other tests may need descriptors at that moment.
    """
    done = subprocess.run(
        [sys.executable, "-c", REFUSED.format(call=call), folder], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_certificates_that_cannot_be_read_now_are_not_misconfigured(tmp_path: Path) -> None:
    said = refusal_without_descriptors('require_authorities(folder / "authorities.pem")', tmp_path)
    assert re.match(r"MachineExhausted .*Too many open files", said), said
    with pytest.raises(Misconfigured, match="cannot be read"):
        require_authorities(tmp_path / "authorities.pem")


@pytest.mark.long
def test_a_key_of_secrets_that_cannot_be_read_now_is_not_misconfigured(tmp_path: Path) -> None:
    SecretBox(None, tmp_path).add_key()
    said = refusal_without_descriptors("SecretBox(None, folder).drop_old_keys()", tmp_path)
    assert re.match(r"MachineExhausted .*Too many open files", said), said


@pytest.mark.parametrize("error", [NO_DESCRIPTORS, subprocess.TimeoutExpired("node", 20)])
def test_pins_that_cannot_be_read_now_are_read_later(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax.subprocess, "run", raising(error))
    with pytest.raises(MachineExhausted):
        syntax._judge(("lodash@4.17.21",))


@pytest.mark.parametrize("fault", [NO_DESCRIPTORS, TimeoutError(), Finished(137, "", ""), Finished(-9, "", "")])
async def test_packages_are_not_installed_without_a_sandbox_because_one_trial_failed(
    fault: Exception | Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Command] = []

    async def run(sandbox: BuildSandbox, probe: Command, *_: object, **__: object) -> Finished:
        tries.append(probe)
        if len(tries) == 1 and isinstance(fault, Exception):
            raise fault
        if len(tries) == 1:
            return fault
        return Finished(0, "uv 1", "")

    async def found() -> Any:
        return None

    monkeypatch.setattr(BuildSandbox, "run", run)
    monkeypatch.setattr("evaluator_host.engine.environments.build.builder.find_bubblewrap", found)
    (tmp_path / "build").mkdir()
    builder = Builder(tmp_path / "build", file_mb=100)
    if isinstance(fault, Exception):
        with pytest.raises(MachineExhausted):
            await builder._find()
    assert isinstance(await builder._find(), BuildSandbox), "after a killed check, the builder must try again at once"
    assert len(tries) == 2


async def test_downloads_made_without_a_sandbox_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: object, **__: object) -> Finished:
        return Finished(1, "", "no permission")

    async def found() -> Any:
        return None

    monkeypatch.setattr(BuildSandbox, "run", run)
    monkeypatch.setattr("evaluator_host.engine.environments.build.builder.find_bubblewrap", found)
    home = tmp_path / "build"
    home.mkdir()
    assert await Builder(home, file_mb=100)._find() == "no permission"
    assert (home / "downloads").stat().st_uid == os.geteuid(), (
        "files that do not belong to the builder's user must be taken over completely"
    )


async def test_a_folder_that_a_command_could_not_remove_goes_when_the_host_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "build"
    home.mkdir()
    builder = Builder(home, file_mb=100)
    await builder.close()  # there is nothing to remove, since nothing was built
    with monkeypatch.context() as read_only:
        read_only.setattr(Path, "rmdir", refuse)
        async with work_folder(builder.work, "resolve-") as folder:
            (folder / "user.npmrc").write_text("a credential")
    assert folder.exists()
    assert "could not be removed" in caplog.text
    await builder.close()
    assert not builder.work.exists()


def refuse(path: Path) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), os.fspath(path))


async def test_a_call_is_told_that_the_machine_lacks_something(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    middleware = AccessMiddleware(
        raising(NO_DESCRIPTORS), access=None, hosts=(), body_bytes=1, upload_bytes=1, body_timeout_s=1, memory_bytes=1,
        open_paths=("/",),
    )  # fmt: skip
    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"host", b"localhost")]}
    await middleware(scope, raising(OSError()), send)
    assert (sent[0]["status"], json.loads(sent[1]["body"])["code"]) == (503, "machine_exhausted")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("routed", [False, True])
async def test_an_answer_that_has_begun_ends_with_its_reason_logged_once(
    routed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"{}"
        raise StoreUnavailable("the database does not answer")

    app = FastAPI()
    install_error_handlers(app)

    @app.get("/")
    async def _stream() -> StreamingResponse:
        return StreamingResponse(parts())

    async def send(message: Any) -> None:
        await asyncio.sleep(0)

    async def wait() -> Any:
        await asyncio.Event().wait()

    middleware = AccessMiddleware(
        app if routed else StreamingResponse(parts()), access=None, hosts=(), body_bytes=1, upload_bytes=1,
        body_timeout_s=1, memory_bytes=1, open_paths=("/",),
    )  # fmt: skip
    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"host", b"localhost")], "query_string": b""}
    with pytest.raises(CutOff):
        await middleware(scope, wait, send)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "GET /: the response was cut off: the database does not answer")
    ]


async def test_a_body_that_the_machine_does_not_let_be_read_is_not_the_callers_fault() -> None:
    sent, app = list[Any](), FastAPI()
    install_error_handlers(app)
    app.add_middleware(
        AccessMiddleware, access=None, hosts=(), body_bytes=9, upload_bytes=9, body_timeout_s=1, memory_bytes=9,
        open_paths=("/",),
    )  # fmt: skip

    @app.post("/")
    async def take(body: dict[str, int]) -> None:
        """Accept a body, as the route that the test calls."""

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"2")]
    scope = {"type": "http", "path": "/", "method": "POST", "headers": headers, "query_string": b"", "app": app}
    await app(scope, raising(NO_DESCRIPTORS), send)
    assert (sent[0]["status"], json.loads(sent[1]["body"])["code"]) == (503, "machine_exhausted")
