"""Installs the packages of a lock in a folder: checks hashes, does not run package scripts, reports progress."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.record import BuildEvent, Step
from evaluator_host.engine.packages.index import IndexSettings, npm_workspace, uv_workspace
from evaluator_host.engine.packages.lock import Lock
from evaluator_host.engine.packages.npm.resolve import NO_ANSWER, from_outside, manifest, platform_flags
from evaluator_host.engine.packages.pip.resolve import last_cause, platform_tag, unanswered
from evaluator_host.engine.packages.tools import Resolver, shorten, unreachable
from evaluator_host.engine.system.processes import Finished, Run
from evaluator_host.engine.system.tree import remove, size_bytes
from evaluator_host.types.errors import HostError, PackagesFailed
from evaluator_host.types.evaluator import Language

Tell: TypeAlias = Callable[[BuildEvent], None]

_LOOK_EVERY_S: Final = 0.25
_NPM_CODE: Final = re.compile(r"npm (?:error|ERR!) code (\w+)")


async def install(
    lock: Lock, files: Path, *, builder: Builder, index: IndexSettings, ceiling_mb: int, tell: Tell
) -> None:
    """Install the packages of a lock in `files`: a site directory for Python, a folder with `node_modules` for npm.

    Raises:
      PackagesFailed: a hash is wrong, or the package set is larger than `ceiling_mb`.
      IndexUnavailable: the index does not answer.
    """
    await asyncio.to_thread(files.mkdir)
    total = len(lock.packages)
    python = lock.language is Language.PYTHON
    tell(BuildEvent(Step.DOWNLOADING, 0, total))
    async with _watched(files, lock, index=index, ceiling_mb=ceiling_mb, tell=tell):
        work = _pip(lock, files, builder, index) if python else _npm(lock, files, builder, index)
        await work
    if await asyncio.to_thread(size_bytes, files) > ceiling_mb << 20:  # the set may have grown since the last check
        raise _too_large(ceiling_mb)
    tell(BuildEvent(Step.INSTALLING, total, total))


async def _pip(lock: Lock, files: Path, builder: Builder, index: IndexSettings) -> None:
    sources = lock.source_builds
    index = index.for_builder() if sources else index
    tools, target = builder.tools, lock.target
    async with uv_workspace(index) as workspace:
        (workspace.path / "set.txt").write_text(lock.text, "utf-8")
        argv = (
            str(tools.uv), "pip", "install", "--target", str(files), "--python", str(tools.python),
            "--python-version", target.runtime, "--python-platform", platform_tag(target), "--no-python-downloads",
            "--require-hashes", "--no-deps", "--no-config", "--no-progress", "--color", "never",
            "--link-mode", "copy" if sources else "hardlink", *(() if sources else ("--only-binary", ":all:")),
            "-r", "set.txt",
        )  # fmt: skip
        run: Run = partial(builder.run_sources, also=(files,)) if sources else partial(builder.run, stage=files)
        finished = await Resolver(index, target, tools, run, sources).attempt(argv, workspace)
    if finished.code != 0:
        raise _pip_failure(finished, index)
    (files / ".lock").unlink(missing_ok=True)  # a file that uv locks while it installs
    await asyncio.to_thread(remove, files / "bin")  # scripts that contain the path of this host's Python


def _pip_failure(finished: Finished, index: IndexSettings) -> HostError:
    if unanswered(finished.stderr):
        return unreachable(last_cause(finished.stderr), index)
    return PackagesFailed(f"The packages cannot be installed:\n{shorten(finished.stderr, index)}")


async def _npm(lock: Lock, files: Path, builder: Builder, index: IndexSettings) -> None:
    (files / "package.json").write_text(manifest(lock.pins), "utf-8")
    (files / "package-lock.json").write_text(lock.text, "utf-8")
    async with npm_workspace(index) as workspace:
        argv = (
            *builder.tools.npm_command, "ci", "--ignore-scripts",
            "--no-audit", "--no-fund", "--loglevel=error", *platform_flags(lock.target),
        )  # fmt: skip
        resolver = Resolver(index, lock.target, builder.tools, partial(builder.run, also=(workspace.path,)))
        finished = await resolver.attempt(argv, replace(workspace, path=files))
    if finished.code != 0:
        found = _NPM_CODE.search(finished.stderr)
        if found and NO_ANSWER.fullmatch(found[1]):
            raise unreachable(finished.stderr, index)
        said = f"The packages cannot be installed:\n{shorten(finished.stderr, index)}"
        raise from_outside(finished.stderr) or PackagesFailed(said)
    (files / "node_modules").mkdir(exist_ok=True)
    # npm does not need these files any more, and the last one would show guests which registry each package came from.
    for name in ("package.json", "package-lock.json", "node_modules/.package-lock.json"):
        (files / name).unlink(missing_ok=True)


@asynccontextmanager
async def _watched(
    files: Path, lock: Lock, *, index: IndexSettings, ceiling_mb: int, tell: Tell
) -> AsyncIterator[None]:
    """Report the progress of an installation in the `with` block; cancel it if the files exceed `ceiling_mb`."""
    work = asyncio.current_task()
    too_large = False

    async def watch() -> None:
        nonlocal too_large
        last, spent_s = 0, 0.0
        known = await asyncio.to_thread(_downloaded, index.cache_dir, lock.language)
        while True:
            # pause for as long as the last check took
            await asyncio.sleep(max(_LOOK_EVERY_S, spent_s))
            started = time.monotonic()
            try:
                done, size = await asyncio.to_thread(_look, files, lock, index.cache_dir, known)
            except OSError:  # a folder was moved while it was measured; if this goes on, `DiskWatch` ends the command
                continue
            finally:
                spent_s = time.monotonic() - started
            if size > ceiling_mb << 20 and work is not None:
                too_large = True
                work.cancel()
                return
            if done > last:
                last = done
                tell(BuildEvent(Step.DOWNLOADING, done, len(lock.packages)))

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not too_large or work is None or work.uncancel():
            raise
        raise _too_large(ceiling_mb) from None
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher


def _too_large(ceiling_mb: int) -> PackagesFailed:
    return PackagesFailed(
        f"The package set is larger than this host allows ({ceiling_mb} MB): pin smaller or fewer packages."
    )


def _look(files: Path, lock: Lock, cache: Path, known: int) -> tuple[int, int]:
    if lock.language is Language.PYTHON:
        installed = sum(1 for _ in files.glob("*.dist-info"))
        done = installed or max(0, _downloaded(cache, lock.language) - known)
    else:
        done = sum(1 for pattern in ("*", "@*/*") for _ in (files / "node_modules").glob(f"{pattern}/package.json"))
    return min(done, len(lock.packages)), size_bytes(files)


def _downloaded(cache: Path, language: Language) -> int:
    if language is not Language.PYTHON:
        return 0
    return sum(1 for _ in (cache / "uv").glob("archive-v*/*"))
