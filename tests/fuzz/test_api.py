"""Sends random requests that fit the OpenAPI document to the HTTP API: the document describes every answer, and no
answer is a 500.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from tests.fuzz.bounds import bounded
from tests.server import Server
from tests.tools import copy_tools

EXAMPLES = 12  # number of examples for each route
FEWER = 3  # number of examples for each of NVIDIA's routes, because there are many similar ones
ANSWERED_S = 30.0
# address of an index without a server: pins that happen to be valid must not be looked up on the network
NOWHERE = "http://127.0.0.1:9"
LIMITS = {
    "EVALUATOR_HOST_PIP_INDEX_URL": NOWHERE, "EVALUATOR_HOST_NPM_REGISTRY": NOWHERE, "EVALUATOR_HOST_INDEX_TIMEOUT_S": "5",
    "EVALUATOR_HOST_MAX_TIMEOUT_S": "10", "EVALUATOR_HOST_LOAD_TIMEOUT_S": "5",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("host")
    copy_tools(folder / "data")
    with Server(log=folder / "log", environment=LIMITS, data_dir=folder / "data") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_answer_is_one_that_is_described(server: Server) -> None:
    import schemathesis  # noqa: PLC0415 - the import takes half a second

    schemathesis.serializer.alias("application/x-ndjson", "application/octet-stream")
    addresses = [f"{server.url}/openapi.json"]
    addresses += [f"{addresses[0]}?of={name}" for name in server.client.get("/openapi.json").json()["x-documents"]]
    schemas = map(schemathesis.openapi.from_url, addresses)
    faults = {}
    for found in (one for schema in schemas for one in schema.get_all_operations()):
        operation = found.ok()
        try:
            ask(operation)
        except (Exception, BaseExceptionGroup) as fault:  # noqa: BLE001 - the test goes on with the other routes
            told = fault.exceptions[0] if isinstance(fault, BaseExceptionGroup) else fault
            faults[operation.label] = str(told)[:600]
    assert faults == {}, "\n".join(f"{route}: {said}" for route, said in faults.items())


def ask(operation: Any) -> None:
    """Send random requests to one route."""
    from schemathesis.specs.openapi import checks  # noqa: PLC0415

    described = (
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    )

    @bounded(FEWER if operation.path.startswith("/apis/") else EXAMPLES, shrink=False)
    @given(case=operation.as_strategy())
    def one(case: Any) -> None:
        answer = case.call(timeout=ANSWERED_S)
        assert answer.status_code != 500
        case.validate_response(answer, checks=described)
        if answer.status_code >= 400:
            problem = answer.json()
            assert answer.headers["content-type"] == ["application/problem+json"]
            assert problem["status"] == answer.status_code
            assert problem["code"]
            assert problem["detail"]
            assert "Traceback" not in answer.text

    one()


def test_the_host_is_well_afterwards(server: Server) -> None:
    assert server.client.get("/readyz").status_code == 200
    code = "def evaluate(inputs, outputs, trace):\n    return 0.5\n"
    answer = server.client.post("/v1/evaluate", json={"evaluator": {"code": code}})
    assert answer.json().get("score") == 0.5, answer.text
    assert "Traceback" not in server.log
