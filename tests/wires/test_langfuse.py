"""Langfuse's API (wire `langfuse`): requests in the documented form, and from AWS's own clients for Lambda."""

import hmac
import json
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import httpx
import pytest

from evaluator_host.types.evaluator import Language
from tests.dialects.cases import NativeCase
from tests.keyed import audited, bearer, eventually
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.real_clients import run_node, run_python
from tests.wires.wired import ENDLESS, SECRET, cases_of, differing, sent

pytestmark = pytest.mark.engine

PATH = "/wires/langfuse"
INVOKE = f"{PATH}/2015-03-31/functions/code-based-eval-executor-python/invocations"
ONE = "def evaluate(ctx):\n    return {'scores': [{'name': 'n', 'value': 1}]}\n"
LOOP = f"def evaluate(ctx):\n    {ENDLESS}\n"
OBSERVED = {"input": "2+2?", "output": "4", "metadata": {}, "toolCalls": []}


def dispatch(source: str, language: str = "PYTHON", *, tenant: str = "o1/p1", **payload: Any) -> dict[str, Any]:
    """Return a request as Langfuse's worker sends it."""
    organisation, project = tenant.split("/")
    return {
        "scope": {"organizationId": organisation, "projectId": project, "evaluatorId": "e1"},
        "runtime": {"language": language},
        "execution": {"jobExecutionId": "j1"},
        "code": {"source": source},
        "payload": {"observation": OBSERVED, **payload},
    }


def of_case(case: NativeCase) -> dict[str, Any]:
    language = "PYTHON" if case.language is Language.PYTHON else "TYPESCRIPT"
    payload = {name: value for name, value in case.row.variables.items() if value is not None}
    return dispatch(sent(case), language, **payload)


def error_of(response: httpx.Response, code: str, status: int = 200) -> str:
    """Check that a response is an error in Langfuse's format, and return the message."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    assert response.json()["error"]["code"] == code, response.text
    return str(response.json()["error"]["message"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_every_case_ends_as_by_langfuse(host: Server, part: int) -> None:
    fitting = [case for case in cases_of("langfuse") if "observation" in (case.row.variables or {})]
    assert len(fitting) > 30
    cases = fitting[part::3]
    with ThreadPoolExecutor(8) as pool:
        answers = [one.json() for one in pool.map(lambda case: host.client.post(PATH, json=of_case(case)), cases)]
    found = [(answer.get("scores"), "error" in answer) for answer in answers]
    assert differing(cases, found) == []


@pytest.mark.long
def test_errors_have_langfuse_s_codes_and_texts(client: httpx.Client) -> None:
    def fails(source: str, code: str, language: str = "PYTHON") -> str:
        return error_of(client.post(PATH, json=dispatch(source, language)), code)

    raised = "def evaluate(ctx):\n    data = {}\n    return data['x']\n"
    assert fails(raised, "USER_CODE_ERROR") == "KeyError: 'x' (line 3)"
    typescript = "function evaluate(ctx: any) {{ {} }}".format
    assert fails(typescript("throw new Error('no output')"), "USER_CODE_ERROR", "TYPESCRIPT") == "no output"
    assert fails(typescript("return ctx.none.x"), "USER_CODE_ERROR", "TYPESCRIPT").startswith("TypeError: Cannot read")
    assert "line 1" in fails("def evaluate(ctx)\n", "INVALID_SOURCE")
    assert fails("def score(ctx): return 1", "INVALID_SOURCE")
    assert fails("def evaluate(ctx): return 1", "INVALID_RESULT")
    assert fails(ONE, "UNSUPPORTED_RUNTIME", "RUBY")
    assert fails("#" * (257 << 10), "SOURCE_TOO_LARGE")
    many = "def evaluate(ctx):\n    return {'scores': [{'name': 'x' * 300, 'value': 1}] * 1000}\n"
    assert fails(many, "RESULT_TOO_LARGE")


def test_a_body_that_is_not_a_dispatch_is_answered_in_the_same_form(client: httpx.Client) -> None:
    error_of(client.post(PATH, content=b"{"), "INVALID_SOURCE")
    error_of(client.post(PATH, json=[1]), "INVALID_SOURCE")
    error_of(client.post(PATH, json={**dispatch(ONE), "payload": 1}), "EXTERNAL_INVOCATION_ERROR")
    error_of(client.get(PATH), "EXTERNAL_INVOCATION_ERROR", 405)
    error_of(client.post(f"{PATH}/other", json={}), "EXTERNAL_INVOCATION_ERROR", 404)
    error_of(client.post(PATH, content=b"x" * (6 << 20)), "PAYLOAD_TOO_LARGE")


def test_a_bearer_or_a_signed_body_proves_the_secret(keyed: Keyed) -> None:
    body = json.dumps(dispatch(ONE)).encode()
    url = f"{keyed.url}{PATH}"

    def signed(secret: str, at: float) -> httpx.Response:
        text = f"{int(at)}".encode() + b"." + body
        signature = f"t={int(at)},v1={hmac.new(secret.encode(), text, sha256).hexdigest()}"
        return httpx.post(url, content=body, headers={"x-langfuse-signature": signature})

    assert httpx.post(url, content=body, headers=bearer(SECRET)).json()["scores"]
    assert httpx.post(url, content=body, headers=bearer(keyed.key)).json()["scores"]
    assert signed(SECRET, time.time()).json()["scores"]
    for refused in (
        httpx.post(url, content=body),
        httpx.post(url, content=body, headers=bearer("eh_wrong_key")),
        signed("another secret", time.time()),
        signed(SECRET, time.time() - 400),
        httpx.post(url, content=body, headers={"x-langfuse-signature": "t=1,v1="}),
    ):
        error_of(refused, "EXTERNAL_INVOCATION_ERROR", 401)


def test_a_tenant_has_its_workspace_and_an_unknown_one_none(keyed: Keyed) -> None:
    def ask(tenant: str) -> httpx.Response:
        return httpx.post(f"{keyed.url}{PATH}", json=dispatch(ONE, tenant=tenant), headers=bearer(SECRET))

    assert ask("o1/p1").json()["scores"]
    assert ask("o2/any").json()["scores"]
    error_of(ask("o3/p1"), "EXTERNAL_INVOCATION_ERROR", 403)
    invoked = httpx.post(f"{keyed.url}{INVOKE}", json=dispatch(ONE, tenant="o3/p1"), headers=bearer(SECRET))
    assert (invoked.status_code, invoked.headers["x-amzn-errortype"]) == (403, "AccessDeniedException")
    eventually(lambda: {"of-o1", "of-o2"} <= {line.workspace for line in audited(keyed.database)})
    assert {line.verb for line in audited(keyed.database) if line.workspace == "of-o1"} == {"wires.langfuse"}


@pytest.mark.long
def test_an_endless_loop_ends_before_the_clock(keyed: Keyed) -> None:
    """An endless loop ends in time: the host must answer within ten seconds, after which Langfuse gives up."""
    error_of(httpx.post(f"{keyed.url}{PATH}", json=dispatch(LOOP), headers=bearer(SECRET), timeout=10), "TIMEOUT")
    asked = dispatch(f"{LOOP.strip()}\n", tenant="o1/p1")
    answer = httpx.post(f"{keyed.url}{INVOKE}", json=asked, headers=bearer(SECRET), timeout=10)
    assert (answer.status_code, answer.headers["x-amz-function-error"]) == (200, "Unhandled")
    assert answer.json()["errorType"] == "Sandbox.Timedout"
    module = dispatch("while True: pass\n")
    error_of(httpx.post(f"{keyed.url}{PATH}", json=module, headers=bearer(SECRET), timeout=10), "TIMEOUT")


BOTO = """
import json, sys, boto3
from botocore.config import Config
url, key, bodies = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
config = Config(retries={"max_attempts": 1}, read_timeout=10)
client = boto3.client("lambda", endpoint_url=url, region_name="eu-central-1", aws_access_key_id=key, aws_secret_access_key="any", config=config)
found = []
for body in bodies:
    try:
        got = client.invoke(FunctionName="code-based-eval-executor-python", InvocationType="RequestResponse", Payload=json.dumps(body))
        found.append([got["StatusCode"], got.get("FunctionError"), json.loads(got["Payload"].read())])
    except client.exceptions.ClientError as error:
        found.append([error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"], None])
print(json.dumps(found))
"""
AWS = """
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
const [url, key, bodies] = [process.argv[2], process.argv[3], JSON.parse(process.argv[4])];
const credentials = { accessKeyId: key, secretAccessKey: "any" };
const client = new LambdaClient({ endpoint: url, region: "eu-central-1", credentials, maxAttempts: 1 });
const found = [];
for (const body of bodies) {
  const command = new InvokeCommand({ FunctionName: "code-based-eval-executor-python", InvocationType: "RequestResponse", Payload: JSON.stringify(body), TenantId: "o1:p1" });
  try {
    const got = await client.send(command);
    found.push([got.StatusCode, got.FunctionError ?? null, JSON.parse(Buffer.from(got.Payload).toString())]);
  } catch (error) {
    found.push([error.$metadata.httpStatusCode, error.name, null]);
  }
}
console.log(JSON.stringify(found));
"""


@pytest.mark.differential
@pytest.mark.parametrize("client", ["boto3", "@aws-sdk/client-lambda"])
def test_aws_s_own_clients_invoke_it_as_lambda(keyed: Keyed, client: str) -> None:
    bodies = json.dumps(
        [dispatch(ONE), dispatch("def evaluate(ctx): return ctx.x"), dispatch(LOOP), dispatch("#" * 70_000)]
    )

    def invoke(key: str, url: str = f"{keyed.url}{PATH}") -> Any:
        return (
            run_python("boto3", BOTO, url, key, bodies)
            if client == "boto3"
            else run_node("clients", AWS, url, key, bodies)
        )

    for scored, raised, endless, large in (invoke(keyed.key), invoke("any", f"{keyed.url}{PATH}/key/{keyed.key}")):
        assert scored == [200, None, {"scores": [{"name": "n", "value": 1}]}]
        assert raised[2]["error"]["code"] == "USER_CODE_ERROR"
        assert endless[:2] == [200, "Unhandled"]
        assert large[:2] == [413, "RequestTooLargeException"]
    assert {tuple(one[:2]) for one in invoke("eh_wrong_key")} >= {(403, "UnrecognizedClientException")}


def test_metrics_count_requests_by_wire(host: Server) -> None:
    host.client.post(PATH, json=dispatch(ONE))
    assert 'evaluator_host_wire_requests_total{status="200",wire="langfuse"}' in host.client.get("/metrics").text
