"""Hosts that each have their own data directory, and install packages from the tests' own index."""

import json
import os
from pathlib import Path
from typing import Any

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult
from tests import forked
from tests.engines import engine_address
from tests.package_index import Index
from tests.package_sets import RUNTIME_IMAGE
from tests.server import Server, free_port
from tests.tools import copy_tools

LABEL = "import {0}\ndef evaluate(inputs, outputs, trace):\n    return {{'score': 1, 'label': {0}.said}}\n"


class Host:
    """A data directory, a backend and an index. `Host.settings` is for a service in this process, `Host.run` runs a
    command, and `Host.server` runs a server.
    """

    def __init__(self, home: Path, backend: str, *, index: Index | None, image: str = RUNTIME_IMAGE) -> None:
        self.home = home
        self.backend = backend
        self.image = image
        self.simple = index.simple if index else f"http://127.0.0.1:{free_port()}/simple"
        copy_tools(home)

    @property
    def shelf(self) -> Path:
        """Return the folder of the host's package sets."""
        return self.home / "environments"

    def folder(self, digest: str) -> Path:
        return self.shelf / digest.removeprefix("sha256:")

    def settings(self, **changes: Any) -> Settings:
        """Return the settings for a service in this process."""
        return Settings(
            sandbox=SandboxChoice(self.backend),
            data_dir=self.home,
            docker_host=engine_address(),
            docker_image=self.image,
            pip_index_url=self.simple,
            index_timeout_s=30,
            **{"idle_sandboxes": 0, **changes},
        )

    def environment(self, **more: str) -> dict[str, str]:
        """Return the host's settings as environment variables, for a separate process."""
        return {
            **os.environ,
            **more,
            "EVALUATOR_HOST_DATA_DIR": str(self.home),
            "EVALUATOR_HOST_SANDBOX": self.backend,
            "EVALUATOR_HOST_DOCKER_HOST": engine_address(),
            "EVALUATOR_HOST_DOCKER_IMAGE": self.image,
            "EVALUATOR_HOST_PIP_INDEX_URL": self.simple,
            "EVALUATOR_HOST_INDEX_TIMEOUT_S": "30",
        }

    def run(self, *arguments: str, code: int = 0, as_json: bool = True) -> Any:
        """Run a command, check its exit code, and return its JSON output; without output, its error message."""
        done = forked.run([*arguments, *(["--json"] if as_json else [])], env=self.environment(), timeout=200)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    def server(self, log: Path, **more: str) -> Server:
        """Start a server and return it; `more` has further environment variables."""
        return Server(self.backend, log=log, environment=self.environment(**more), data_dir=self.home)


async def label(service: Service, code: str, *packages: str, python: str | None = None) -> str | None:
    """Run an evaluator, and return the label in its result."""
    evaluator = Evaluator(code=code, packages=packages, python=python)
    result: EvaluationResult = await service.evaluate(evaluator, Row())
    assert result.error is None, result.error
    return result.label
