"""Makes locks with the tests' own indexes, because real indexes do not offer the cases tested here: faults,
hostile answers, credentials.
"""

import asyncio
import threading
from pathlib import Path

import pytest

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.system import processes
from evaluator_host.engine.system.processes import Command, Finished, OutputFlood, run
from evaluator_host.types.errors import IndexUnavailable, Misconfigured, PackagesFailed
from evaluator_host.types.evaluator import Language
from tests.lock_sites import (
    JAVASCRIPT,
    PYTHON,
    Site,
    lock_of,
    npm_project,
    python_project,
    serving,
    source_archive,
    wheel,
    with_user,
)


async def test_an_index_with_credentials_works_and_the_lock_knows_nothing_of_them(tmp_path: Path) -> None:
    with serving(Site(user="bob:s3cr3t-w0rd")) as site:
        python_project(site, "inhouse", **{"inhouse-1.0.0-py3-none-any.whl": wheel("inhouse")})
        npm_project(site, "inhouse")
        index = IndexSettings(
            cache_dir=tmp_path,
            pip_index_url=with_user(site.url, "bob:s3cr3t-w0rd") + "/simple",
            npm_registry=with_user(site.url, "bob:s3cr3t-w0rd"),
        )
        python = await lock_of(["inhouse==1.0.0"], PYTHON, index)
        npm = await lock_of(["inhouse@1.0.0"], JAVASCRIPT, index)
    for lock in (python, npm):
        assert [package.name for package in lock.packages] == ["inhouse"]
        for secret in ("s3cr3t-w0rd", "bob", "127.0.0.1"):
            assert secret not in lock.to_json()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
async def test_wrong_credentials_are_the_index_not_answering(raw: str, language: Language, tmp_path: Path) -> None:
    with serving(Site(user="bob:right")) as site:
        url = with_user(site.url, "bob:wr0ng-w0rd")
        index = IndexSettings(cache_dir=tmp_path, pip_index_url=f"{url}/simple", npm_registry=url)
        with pytest.raises(IndexUnavailable) as caught:
            await lock_of([raw], language, index)
    assert "wr0ng-w0rd" not in caught.value.detail


@pytest.mark.long
@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
async def test_a_broken_index_is_the_index_not_answering(raw: str, language: Language, tmp_path: Path) -> None:
    with serving(Site(status=503)) as site:
        index = IndexSettings(cache_dir=tmp_path, pip_index_url=f"{site.url}/simple", npm_registry=site.url)
        with pytest.raises(IndexUnavailable):
            await lock_of([raw], language, index)


@pytest.mark.long
@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
async def test_a_missing_index_counts_as_one_that_does_not_answer(raw: str, language: Language, tmp_path: Path) -> None:
    index = IndexSettings(
        cache_dir=tmp_path, pip_index_url="http://127.0.0.1:9/simple", npm_registry="http://127.0.0.1:9/"
    )
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        await lock_of([raw], language, index)


@pytest.mark.long
async def test_the_operators_own_configuration_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Site()) as real, serving(Site()) as other:
        python_project(real, "inhouse", **{"inhouse-1.0.0-py3-none-any.whl": wheel("inhouse")})
        npm_project(real, "inhouse")
        (tmp_path / ".npmrc").write_text(f"registry={other.url}\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL", "npm_config_registry"):
            monkeypatch.setenv(name, other.url)
        monkeypatch.setenv("NODE_OPTIONS", "--no-such-option")
        index = IndexSettings(cache_dir=tmp_path / "c", pip_index_url=f"{real.url}/simple", npm_registry=real.url)
        await lock_of(["inhouse==1.0.0"], PYTHON, index)
        await lock_of(["inhouse@1.0.0"], JAVASCRIPT, index)
        assert other.asked == []


async def test_a_build_script_is_never_run_on_the_host(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with serving(Site(user="bob:s3cr3t-w0rd")) as site:
        python_project(site, "evil", **{"evil-1.0.0.tar.gz": source_archive("evil", marker)})
        url = with_user(site.url, "bob:s3cr3t-w0rd") + "/simple"
        with pytest.raises(PackagesFailed, match="allow_source_builds"):
            await lock_of(["evil==1.0.0"], PYTHON, IndexSettings(cache_dir=tmp_path / "c", pip_index_url=url))
    assert not marker.exists()


@pytest.mark.long
async def test_a_source_build_is_resolved_by_the_builder_alone_and_without_credentials(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    commands: list[Command] = []

    async def builder(command: Command, timeout_s: float) -> Finished:
        commands.append(command)
        return await run(command, timeout_s)

    with serving(Site()) as site:
        python_project(site, "evil", **{"evil-1.0.0.tar.gz": source_archive("evil", marker)})
        url = with_user(site.url, "bob:s3cr3t-w0rd") + "/simple"
        index = IndexSettings(cache_dir=tmp_path / "c", pip_index_url=url)
        with pytest.raises(Misconfigured):
            await lock_of(["evil==1.0.0"], PYTHON, index, allow_source_builds=True)
        lock = await lock_of(["evil==1.0.0"], PYTHON, index, allow_source_builds=True, builder=builder)
    assert lock.source_builds
    assert [package.name for package in lock.packages] == ["evil"]
    assert len(commands) == 1
    assert "s3cr3t-w0rd" not in marker.read_text()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "source",
    ["git+ssh://git@example.invalid/a.git", "github:a/b", "file:../evil", "URL/evil.tgz"],
)
async def test_an_npm_package_cannot_pull_in_what_the_registry_does_not_have(source: str, tmp_path: Path) -> None:
    with serving(Site()) as site:
        npm_project(site, "good", dependencies={"evil": source.replace("URL", site.url)})
        index = IndexSettings(cache_dir=tmp_path, npm_registry=site.url)
        with pytest.raises(PackagesFailed, match="outside the registry"):
            await lock_of(["good@1.0.0"], JAVASCRIPT, index)
        assert "/evil.tgz" not in site.asked


async def test_a_python_package_cannot_pull_in_what_the_index_does_not_have(tmp_path: Path) -> None:
    with serving(Site()) as site:
        content = wheel("good", f"evil @ {site.url}/evil-1.0.0-py3-none-any.whl")
        python_project(site, "good", **{"good-1.0.0-py3-none-any.whl": content})
        with pytest.raises(PackagesFailed):
            await lock_of(
                ["good==1.0.0"], PYTHON, IndexSettings(cache_dir=tmp_path, pip_index_url=f"{site.url}/simple")
            )
        assert not [path for path in site.asked if "evil" in path]


async def test_a_version_without_a_hash_is_refused(tmp_path: Path) -> None:
    with serving(Site()) as site:
        npm_project(site, "good", dist={"tarball": f"{site.url}/good.tgz"})
        with pytest.raises(PackagesFailed, match="integrity"):
            await lock_of(["good@1.0.0"], JAVASCRIPT, IndexSettings(cache_dir=tmp_path, npm_registry=site.url))


def processes_with(text: str) -> list[str]:
    """Return the programs whose environment, as the kernel shows it, contains `text`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
@pytest.mark.parametrize("way", ["cancelled", "timeout"])
async def test_a_hanging_index_leaves_no_process(raw: str, language: Language, way: str, tmp_path: Path) -> None:
    with serving(Site(hang=threading.Event())) as site:
        index = IndexSettings(
            cache_dir=tmp_path / "downloads",
            pip_index_url=f"{site.url}/simple",
            npm_registry=site.url,
            timeout_s=15.0 if way == "timeout" else 60.0,  # on a busy machine, npm takes seconds to send a request
        )
        task = asyncio.create_task(lock_of([raw], language, index))
        while not site.asked:
            assert not task.done()
            await asyncio.sleep(0.02)
        assert processes_with(str(tmp_path)) != []
        if way == "cancelled":
            task.cancel()
        with pytest.raises(asyncio.CancelledError if way == "cancelled" else IndexUnavailable):
            await task
        assert processes_with(str(tmp_path)) == []


async def test_a_program_that_floods_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OUTPUT_BYTES", 100_000)
    with pytest.raises(OutputFlood):
        await run(Command(("/usr/bin/yes",), tmp_path, {"MARK": str(tmp_path)}), 30)
    assert processes_with(str(tmp_path)) == []


async def test_a_child_of_a_program_does_not_outlive_it(tmp_path: Path) -> None:
    argv = ("/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo done")
    done = await run(Command(argv, tmp_path, {"MARK": str(tmp_path)}), 30)
    assert (done.code, done.stdout) == (0, "done\n")
    for _ in range(100):
        if not processes_with(str(tmp_path)):
            return
        await asyncio.sleep(0.02)
    pytest.fail("the child still runs")
