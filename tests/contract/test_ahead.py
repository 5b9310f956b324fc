"""Real sandboxes import packages in advance: good packages are ready for a call, and no bad package ends a sandbox."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.environments.record import empty_environment
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.pool import Lease, LeaseRequest, prewarmed
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Language, Limits, Policy, SandboxSpec
from evaluator_host.types.outcome import Loaded, Returned
from tests.conftest import BACKENDS, settings

IMPORTED = (
    "import sys\nAHEAD = 'heavy' in vars(sys)['modules']\nimport heavy\ndef evaluate(i, o, t):\n    return AHEAD\n"
)
UNAWARE = "def evaluate(inputs, outputs, trace):\n    return 0.5\n"
HOSTILE = {
    "heavy.py": "KEPT = 1\n",
    "parent.py": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "everybody.py": "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
    "stops.py": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass\n",
    "floods.py": "while True: print('x' * 9999)\n",
    "forks.py": "import os\nwhile True: os.fork()\n",
}
DIGEST = "sha256:" + hashlib.sha256(repr(HOSTILE).encode()).hexdigest()


@pytest.fixture(scope="module", params=BACKENDS)
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """A service that keeps a sandbox ready for each package set, which is the default."""
    async with open_engine(settings(request.param, idle_sandboxes=1), prewarm=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    for name, code in HOSTILE.items():
        (folder / name).write_text(code)
    return folder


def spec(packages: Path, *modules: str, processes: int = 32, import_ms: float = 150.0) -> SandboxSpec:
    set_of_files = replace(empty_environment(Language.PYTHON), digest=DIGEST, path=packages)
    environment = replace(set_of_files, import_ms=tuple((module, import_ms) for module in modules))
    return SandboxSpec(Language.PYTHON, environment, processes=processes)


async def first_call(service: Service, on: SandboxSpec, code: str) -> object:
    limits = Limits(processes=on.processes)
    load = LoadRequest(code, Language.PYTHON, Contract.AUTO, None, Policy.NONE, limits, 20.0)
    lease = await service.pool.lease_sandbox(LeaseRequest("ahead", f"{code} {on}", on, load))
    assert isinstance(lease, Lease), lease
    assert isinstance(lease.loaded, Loaded)
    try:
        outcome = await lease.sandbox.call(b'{"args": [{}, "x", null]}', timeout_s=10)
        assert isinstance(outcome, Returned), outcome
        return outcome.value
    finally:
        service.pool.retire(lease)


async def test_a_first_call_finds_its_packages_imported(service: Service, packages: Path) -> None:
    # this gives the imports of the package ten seconds, enough on a busy machine
    on = spec(packages, "heavy", import_ms=4000.0)
    await service.pool.prewarm(on)
    assert await first_call(service, on, IMPORTED) is True
    service.pool.forget(on.environment.digest)


@pytest.mark.long
async def test_hostile_packages_cost_an_evaluator_nothing(
    service: Service, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prewarmed, "_BASE_S", 0.3)  # seconds of processor time for a package whose import never ends
    for number, name in enumerate(sorted(HOSTILE)):
        if name != "heavy.py":
            on = spec(packages, "heavy", name.removesuffix(".py"), processes=16 + number)
            await service.pool.prewarm(on)
            assert await first_call(service, on, UNAWARE) == 0.5, name
    service.pool.forget(on.environment.digest)
