"""Measures package sets: the first call with an installed set, an install from a warm cache, and network connections."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.environments.folder import EnvironmentFolder
from evaluator_host.engine.environments.record import Step
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.service import default_spec
from evaluator_host.types.evaluator import Evaluator, Language, SandboxSpec
from tests.benchmarks.figures import CODE, THE_ROW

PYTHON, JAVASCRIPT = Language.PYTHON, Language.JAVASCRIPT
NUMPY, PANDAS = ("numpy==2.2.6",), ("numpy==2.2.6", "pandas==2.2.3")
INSTALLED = {PYTHON: NUMPY, JAVASCRIPT: ("lodash@4.17.21", "zod@3.25.76")}
USING = {
    NUMPY: "import numpy as np\n" + CODE[PYTHON].replace("1.0 if", "np.float64(1.0) if"),
    PANDAS: "import pandas as pd\n" + CODE[PYTHON].replace("1.0 if", "pd.Series([1.0]).mean() if"),
}
_SETTLED_S = 0.5  # the work that follows a call ends within this many seconds
_WAITING_S = 30.0


@dataclass(frozen=True, slots=True)
class Install:
    """One build from a warm download cache: how many ms it took, how many of these ms went into writing files, and the
    lock.
    """

    whole_ms: float
    files_ms: float
    lock: str


async def first_calls_ms(service: Service, times: int = 9) -> dict[tuple[str, ...], list[float]]:
    """Return, for each list of pins (none, numpy, pandas), how many ms the first calls of new evaluators with these
    pins take. The lists are measured alternately.
    """
    taken: dict[tuple[str, ...], list[float]] = {(): [], NUMPY: [], PANDAS: []}
    specs = {(): default_spec(PYTHON, service.settings)}
    for pins in (NUMPY, PANDAS):
        specs[pins] = default_spec(
            PYTHON, service.settings, (await service.environments.require(pins, PYTHON)).environment
        )
    for number in range(times):
        for pins, measured in taken.items():
            await _one_waits(service, specs[pins])
            code = f"{USING.get(pins, CODE[PYTHON])}# {time.time_ns()} {number}\n"
            started = time.perf_counter()
            result = await service.evaluate(Evaluator(code, PYTHON, packages=pins), THE_ROW)
            measured.append((time.perf_counter() - started) * 1000)
            assert result.score == 1.0, result.error
    return taken


async def _one_waits(service: Service, spec: SandboxSpec) -> None:
    await service.pool.prewarm(spec)
    async with asyncio.timeout(_WAITING_S):
        while not service.pool._prewarmed.may_take(spec):
            await asyncio.sleep(0.05)
    await asyncio.sleep(_SETTLED_S)


async def installs(settings: Settings, language: Language, times: int = 5) -> list[Install]:
    """Build one package set repeatedly, and return every build after the first, which fills the download cache."""
    pins, found = INSTALLED[language], []
    async with open_engine(settings) as service:
        while len(found) <= times:
            report = await service.environments.request(pins, language)
            at: dict[Step, float] = {}
            async for event in service.environments.events(report.key):
                at.setdefault(event.step, time.perf_counter())
                assert event.step is not Step.FAILED, event.detail
            if Step.DOWNLOADING not in at:  # the set was already installed
                await service.environments.delete(report.key)
                continue
            found.append(
                Install(
                    whole_ms=(at[Step.READY] - at[Step.DOWNLOADING]) * 1000,
                    files_ms=(at[Step.CHECKING] - at[Step.DOWNLOADING]) * 1000,
                    lock=(await service.environments.find_report(report.key)).lock or "",
                )
            )
            await service.environments.delete(report.key)
    return found[1:]


def bare_install_ms(settings: Settings, language: Language, *, lock: str, times: int = 5) -> list[float]:
    """Return how many milliseconds only `uv pip install` or `npm ci` takes to install the lock, without network, from
    the host's download cache.
    """
    downloads = EnvironmentFolder(settings.data_dir.resolve() / "environments").downloads
    folder = settings.data_dir.resolve() / "bare"
    tools = installed_tools()
    environment = {**os.environ, "UV_CACHE_DIR": str(downloads / "uv"), "npm_config_cache": str(downloads / "npm")}
    if language is PYTHON:
        command = [str(tools.uv), "pip", "install", "--offline", "--target", "site", *INSTALLED[language]]
    else:
        command = [str(tools.node), str(tools.npm / "bin" / "npm-cli.js"), "ci", "--offline", "--ignore-scripts"]
        command += ["--no-audit", "--no-fund"]
    wanted = dict(pin.rsplit("@", 1) for pin in INSTALLED[language] if "@" in pin)
    taken = []
    for _ in range(times):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if wanted:
            (folder / "package.json").write_text(json.dumps({"dependencies": wanted}))
            (folder / "package-lock.json").write_text(lock)
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        taken.append((time.perf_counter() - started) * 1000)
    shutil.rmtree(folder)
    return taken


async def requests_of_an_installed_set(settings: Settings) -> int:
    """Return how many connections to an index a new host opens for new evaluators with installed package sets."""
    async with open_engine(settings) as service:
        for pins, language in ((NUMPY, PYTHON), (INSTALLED[JAVASCRIPT], JAVASCRIPT)):
            await service.environments.require(pins, language)
    with _counting() as (port, count):
        nowhere = f"http://127.0.0.1:{port}"
        cut = settings.model_copy(
            update={
                "pip_index_url": SecretStr(nowhere),
                "npm_registry": SecretStr(nowhere),
                "proxy": SecretStr(nowhere),
            }
        )
        async with open_engine(cut) as service:
            for pins, language in ((NUMPY, PYTHON), (INSTALLED[JAVASCRIPT], JAVASCRIPT)):
                for number in range(3):
                    comment = "#" if language is PYTHON else "//"
                    code = f"{USING.get(pins, CODE[language])}{comment} {number}\n"
                    result = await service.evaluate(Evaluator(code, language, packages=pins), THE_ROW)
                    assert result.score == 1.0, result.error
    return len(count)


@contextmanager
def _counting() -> Iterator[tuple[int, list[None]]]:
    """Open a port that counts connections and answers none of them."""
    came: list[None] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                came.append(None)
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
