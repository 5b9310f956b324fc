"""Sandboxes keep the same promises if gVisor's kernel answers their system calls
(`EVALUATOR_HOST_DOCKER_RUNTIME=runsc`).
"""

from collections.abc import AsyncIterator
from typing import Any

import docker
import pytest

from evaluator_host.engine.backends import make_backend
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.docker.cleanup import LABEL_INSTANCE
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import settings
from tests.engines import engine_address


def over_gvisor() -> Settings:
    client: Any = docker.APIClient(base_url=engine_address())
    offered = client.info()["Runtimes"]
    client.close()
    if "runsc" not in offered:
        pytest.fail("the engine does not offer runsc: install it (Debian: runsc), and add it to the engine's runtimes")
    return settings("docker", docker_runtime="runsc")


@pytest.fixture(scope="module")
async def gvisor() -> AsyncIterator[Service]:
    async with open_engine(over_gvisor()) as service:
        yield service


async def evaluated(
    service: Service, code: str, *, language: Language = Language.PYTHON, **row: Any
) -> EvaluationResult:
    limits = Limits(timeout_s=1.0 if "while True: pass" in code else 4.0, memory_mb=128)
    return await service.evaluate(Evaluator(code, language, limits=limits), Row(**row))


def python(body: str) -> str:
    lines = "\n    ".join(body.splitlines())
    return f"import os, socket, subprocess, time\ndef evaluate(inputs, outputs, trace):\n    {lines}\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("language", "code"),
    [
        (Language.PYTHON, "def evaluate(inputs, outputs, trace):\n    return inputs['n'] / 2\n"),
        (Language.JAVASCRIPT, "function evaluate(inputs, outputs, trace) { return inputs.n / 2 }"),
    ],
)
async def test_rows_are_scored(gvisor: Service, language: Language, code: str) -> None:
    evaluator = Evaluator(code, language)
    results = await gvisor.evaluate_batch(evaluator, [Row(inputs={"n": n}) for n in range(10)])
    assert [result.score for result in results] == [n / 2 for n in range(10)]


async def test_the_kernel_that_answers_is_gvisors(gvisor: Service) -> None:
    words = "return {'score': 1, 'reason': subprocess.run(['dmesg'], capture_output=True, text=True).stdout}"
    assert "gVisor" in str((await evaluated(gvisor, python(words))).reason)


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("code", "errors"),
    [
        pytest.param(python("while True: pass"), {"timeout"}, id="loop"),
        pytest.param(python("return len([b'x' * (1 << 20) for _ in range(1000)])"), {"memory_limit"}, id="memory"),
        # When the limit of processes is reached, gVisor's own kernel ends, and only the engine can report the reason,
        # sometimes too late. The many processes may also exceed the memory limit first.
        pytest.param(
            python("while True: os.fork()"), {"process_limit", "memory_limit", "crashed", "timeout"}, id="fork bomb"
        ),
        pytest.param(python("os._exit(0)"), {"crashed"}, id="exit"),
        pytest.param(python("open('/opt/runner/python/runner.py', 'w')"), {"user_exception"}, id="write the runner"),
        pytest.param(python("socket.create_connection(('1.1.1.1', 53), 2)"), {"user_exception"}, id="network"),
        pytest.param(python("open('/tmp/x', 'wb').write(bytes(200 << 20))"), {"disk_limit", "memory_limit"}, id="disk"),
    ],
)
async def test_a_hostile_row_fails_alone(gvisor: Service, code: str, errors: set[str]) -> None:
    failed = await evaluated(gvisor, code)
    assert failed.error is not None, failed
    assert failed.error.code in errors, failed.error
    assert (await evaluated(gvisor, python("return 1.0"))).score == 1.0


@pytest.mark.long
async def test_nothing_is_left_and_doctor_recommends_it() -> None:
    chosen, before = over_gvisor(), containers()
    async with open_engine(chosen) as service:
        assert (await evaluated(service, python("return 1.0"))).score == 1.0
        assert containers() > before
    assert containers() == before
    backend = await make_backend(chosen.sandbox, chosen)
    found = {finding.name: finding for finding in await backend.findings()}
    await backend.close()
    assert all(found[name].ok for name in ("engine", "runtime", "python sandbox", "javascript sandbox")), found
    assert "Recommended" in found["boundary"].detail
    assert "ignores our profile" in found["seccomp"].detail


def containers() -> set[str]:
    """Return the containers of this process on the engine with gVisor."""
    client: Any = docker.APIClient(base_url=engine_address())
    listed = client.containers(all=True, filters={"label": [LABEL_INSTANCE]})
    client.close()
    return {found["Id"] for found in listed if found["Labels"][LABEL_INSTANCE].startswith(this_instance())}
