"""Runs the table of cases in every language: contracts, inference, forms of source, and returned values.

All cases run on bubblewrap. Results depend on the host and the runner, which are the same on Docker. On Docker, two
things differ: the transport of source, rows, results and logs, and the image's interpreters and tools. `LINK` has a
case for each of these differences, and for each code of an error. Python's sandboxes on bubblewrap are forked from a
template, which takes half the processor time of a fresh start; `test_template.py` checks that both behave in the same
way.
"""

from collections.abc import AsyncIterator

import pytest

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from tests.conftest import BACKENDS, ON_BUBBLEWRAP, settings
from tests.contract.cases import CASES, Case

BY_ID = {case.id: case for case in CASES}
LINK = (
    # every contract in every language that has the contract
    "return-py-evaluate-object", "return-js-evaluate-object", "return-ts-evaluate-object", "return-py-evaluate-v1-number-text",
    "ts-v1", "return-py-main-json-text", "return-js-main-json-text", "ts-main-typed",
    # values that sending could change: text, numbers, nesting
    "py-non-ascii-source", "js-non-ascii-source", "return-py-evaluate-half-an-emoji",
    "return-js-evaluate-half-an-emoji", "return-py-evaluate-wide-integer", "return-js-evaluate-wide-integer",
    "return-py-evaluate-huger-integer", "return-js-evaluate-undefined", "return-js-evaluate-map", "return-py-evaluate-too-deep",
    # rows with empty outputs, integers, named arguments and traces
    "py-outputs-empty-object", "js-outputs-null", "py-ints-stay-ints", "py-main-kwargs", "py-trace-otlp-paths", "js-trace-otlp-slow",
    # logs beside the result
    "py-printed-score-is-a-log", "js-printed-score-is-a-log",
    # the image's tools: esbuild and the interpreters' own modules
    "ts-decorator", "source-fence-ts", "js-require-builtin", "py-pre-bound-names-in-v1",
    # each error code that a case can end with, and positions in the source
    "return-py-evaluate-null", "return-js-evaluate-nan-inside", "py-v1-missing-answer", "py-no-entry", "py-star-arguments",
    "py-two-parameters", "py-syntax-error",
    "js-load-error", "js-rejected-promise", "ts-error-line",
)  # fmt: skip


@pytest.fixture(scope="module", params=BACKENDS)
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """A service on each backend in turn."""
    own = settings(request.param, sandbox_start=SandboxStart.TEMPLATE)
    async with open_engine(own) as opened:
        yield opened


@pytest.mark.sampled(4)
@ON_BUBBLEWRAP
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_case_has_the_expected_result(service: Service, case: Case) -> None:
    result = await service.evaluate(case.evaluator, case.row)
    assert not case.mismatches(result), result


@pytest.mark.sampled(40)
@pytest.mark.parametrize("service", ["docker"], indirect=True)
@pytest.mark.parametrize("case", LINK)
async def test_a_case_has_the_expected_result_over_docker(service: Service, case: str) -> None:
    result = await service.evaluate(BY_ID[case].evaluator, BY_ID[case].row)
    assert not BY_ID[case].mismatches(result), result


def test_every_error_of_a_case_comes_over_docker_too() -> None:
    assert {case.expected.error for case in CASES} == {BY_ID[case].expected.error for case in LINK}
