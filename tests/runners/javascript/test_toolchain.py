"""The pinned tools are downloaded once and checked; if that fails, the message is clear."""

import asyncio
import json
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.sandbox import commands
from evaluator_host.types.errors import IndexUnavailable, SandboxUnavailable
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests.runners.javascript.conftest import DATA_DIR, JAVASCRIPT, built_runner
from tests.tools import copy_tools, tool_folders


def test_esbuild_runs_and_is_the_pinned_one(esbuild):
    recipe = json.loads((JAVASCRIPT / "toolchain" / "package.json").read_text("utf-8"))
    ended = subprocess.run([str(esbuild), "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == recipe["dependencies"]["esbuild"]


def test_the_lock_has_hashes_and_no_addresses():
    lock = json.loads((JAVASCRIPT / "toolchain" / "package-lock.json").read_text("utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 20
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())


def test_npm_trusts_the_authorities_that_the_host_trusts(monkeypatch, tmp_path):
    for name in ("NODE_EXTRA_CA_CERTS", "EVALUATOR_HOST_CA_FILE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    show = (sys.executable, "-c", "import os; print(os.environ.get('NODE_EXTRA_CA_CERTS'))")
    for name, own in (
        ("SSL_CERT_FILE", "one.pem"),
        ("EVALUATOR_HOST_CA_FILE", "two.pem"),
        ("NODE_EXTRA_CA_CERTS", "three.pem"),
    ):
        monkeypatch.setenv(name, own)
        assert asyncio.run(toolchain._run(show, tmp_path)) == (0, f"{own}\n")


def test_a_second_call_needs_no_network(esbuild, monkeypatch):
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    assert asyncio.run(toolchain.ensure_esbuild(DATA_DIR)) == esbuild


@pytest.mark.long
def test_a_registry_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    with pytest.raises(IndexUnavailable, match="Check the network"):
        asyncio.run(toolchain.ensure_esbuild(tmp_path))
    left = [path.name for path in (tmp_path / "toolchain").iterdir()]
    assert left == [".lock"]


@pytest.mark.long
@pytest.mark.slow
def test_many_at_once_install_once(tmp_path, esbuild):
    async def prepare() -> list[object]:
        return await asyncio.gather(*(toolchain.ensure_esbuild(tmp_path) for _ in range(4)))

    found = asyncio.run(prepare())
    assert len(set(found)) == 1
    assert sorted(path.name for path in (tmp_path / "toolchain").iterdir()) == [".lock", esbuild.parent.name]


def test_old_runners_are_removed_unless_a_process_uses_them(tmp_path):
    home = tmp_path / "toolchain"
    unused, used, older = (home / f"javascript-runner-{name}" for name in ("unused", "used", "older"))
    own = toolchain.javascript_runner_path(tmp_path)
    for folder in (unused, used, older, own):
        folder.mkdir(parents=True)
        (folder / "runner.js").write_text("")
    for folder in (unused, own):
        folder.with_name(f"{folder.name}.lock").touch()
    with other_host_of(used):
        assert toolchain.remove_old_tools(tmp_path) == 1
    kept = {used.name, f"{used.name}.lock", own.name, f"{own.name}.lock"}
    # the folder `older` has no lock file, like folders from versions that made no locks
    assert {path.name for path in home.iterdir()} == {*kept, older.name}
    assert toolchain.remove_old_tools(tmp_path) == 1
    assert not used.exists()
    assert toolchain.remove_old_tools(tmp_path) == 0


@contextmanager
def other_host_of(runner):
    """Start a process that uses a runner's folder, as another host would."""
    hold = "import pathlib, sys\nfrom evaluator_host.engine.environments.toolchain import _keep\n"
    hold += f"_keep(pathlib.Path({str(runner)!r}))\nprint('held', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        yield
        other.communicate()


@pytest.mark.long
def test_the_runner_is_built_once_and_again_where_a_file_of_it_is_damaged(tmp_path, esbuild):
    shutil.copytree(esbuild.parent, toolchain.esbuild_path(tmp_path).parent)
    built = asyncio.run(toolchain.ensure_javascript_runner(tmp_path))
    assert built == toolchain.javascript_runner_path(tmp_path)
    scripts = {f"{name}.{end}" for name in ("runner", "worker", "guest", "parser") for end in ("js", "code")}
    assert {path.name for path in built.iterdir()} == {"compiled.cjs", "runner.cjs", "worker.cjs", "digest", *scripts}
    assert {path.stat().st_mode & 0o777 for path in built.iterdir()} == {0o644}
    made_at = built.stat().st_ctime_ns
    assert asyncio.run(toolchain.ensure_javascript_runner(tmp_path)).stat().st_ctime_ns == made_at
    text = (built / "worker.js").read_text("ascii")
    (built / "worker.js").write_text(text.replace("forbidCodeFromStrings();", "", 1))
    assert asyncio.run(toolchain.ensure_javascript_runner(tmp_path)) == built
    assert (built / "worker.js").read_text("ascii") == text


def test_the_runner_is_built_of_its_sources_each_time_they_change(tmp_path, monkeypatch):
    sources = tmp_path / "javascript"
    shutil.copytree(JAVASCRIPT, sources, ignore=shutil.ignore_patterns("node_modules"))
    monkeypatch.setattr(toolchain, "_JAVASCRIPT", sources)
    digests = []
    for _ in range(2):
        toolchain._sources_digest.cache_clear()
        digests.append(toolchain._sources_digest())
        (sources / "guest" / "values.js").write_text("(function () {})")
    toolchain._sources_digest.cache_clear()
    assert digests[0] != digests[1]


def test_node_takes_the_code_that_the_build_kept():
    flags = json.loads((JAVASCRIPT / "node_flags.json").read_text("utf-8"))
    program = """const { compiled } = require(process.argv[1]);
    console.log(['runner', 'worker', 'guest', 'parser'].map((name) => compiled(name).cachedDataRejected).join())"""
    command = [str(toolchain.node_path()), *flags, "-e", program, str(built_runner() / "compiled.cjs")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "false,false,false,false\n"


def test_packages_for_sandboxes_lie_alone(tmp_path):
    folder = toolchain.restricted_python_dir(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["RestrictedPython", "jedi", "parso", "pyflakes"]
    assert (folder / "RestrictedPython" / "__init__.py").is_file()
    assert toolchain.restricted_python_dir(tmp_path) == folder


def test_tools_of_the_shell_are_copied_once_and_again_once_the_machines_change(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setattr(commands, "_SOURCES", (str(programs),))
    assert toolchain.shell_tools_dir(tmp_path) is None
    for name in ("dash", "box", "gcc"):
        (programs / name).write_text(name)
        (programs / name).chmod(0o4755)
    for name, program in (("sh", "dash"), ("cat", "box"), ("ls", "box")):
        (programs / name).symlink_to(program)
    folder = toolchain.shell_tools_dir(tmp_path)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"sh": "dash", "cat": "box", "ls": "box"}
    assert {path.stat().st_mode & 0o7777 for path in (folder, *folder.iterdir())} == {0o755}
    assert (folder / "cat").samefile(folder / "ls")
    assert toolchain.shell_tools_dir(tmp_path) == folder
    (programs / "dash").write_text("a later version")
    later = toolchain.shell_tools_dir(tmp_path)
    assert (later / "sh").read_text() == "a later version"
    assert toolchain.remove_old_tools(tmp_path) == 0  # this process uses both folders


def test_npm_belongs_to_node():
    ended = subprocess.run([*installed_tools().npm_command, "--version"], capture_output=True, text=True, check=True)
    assert int(ended.stdout.split(".")[0]) >= 10


@pytest.mark.engine
@pytest.mark.parametrize("name", ["worker.code", "guest.js"])
def test_a_host_notices_when_what_its_javascript_sandboxes_run_is_changed(tmp_path, name):
    runner = shutil.copytree(built_runner(), toolchain.javascript_runner_path(tmp_path))
    check = toolchain.watch_tools(tmp_path)
    check()
    (runner / name).write_bytes((runner / name).read_bytes()[:-1])
    with pytest.raises(SandboxUnavailable, match=f"{name} was removed or changed"):
        check()


@pytest.mark.long
async def test_python_runs_in_a_new_data_directory_without_network_and_javascript_says_what_it_needs(
    tmp_path, monkeypatch
):
    await asyncio.to_thread(tool_folders)  # installed while the registry can be reached; the files are copied below
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    settings = Settings(data_dir=tmp_path, sandbox=SandboxChoice.BUBBLEWRAP)
    async with open_engine(settings, prewarm=True) as service:
        python = Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs")
        assert (await service.evaluate(python, Row(outputs=1))).score == 1
        service.supervisor.require_working()
        javascript = Evaluator("export function evaluate(inputs, outputs) { return outputs }", Language.JAVASCRIPT)
        with pytest.raises(IndexUnavailable, match="Without it, this host cannot run JavaScript and TypeScript"):
            await service.evaluate(javascript, Row(outputs=1))
        await asyncio.to_thread(copy_tools, tmp_path)
        assert (await service.evaluate(javascript, Row(outputs=1))).score == 1
        service.supervisor.require_working()
        toolchain.esbuild_path(tmp_path).unlink()
        with pytest.raises(SandboxUnavailable, match="was removed or changed"):
            service.supervisor.require_working()
