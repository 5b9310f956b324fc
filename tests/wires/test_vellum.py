"""Vellum's API (wire `vellum`): Vellum's own client, and plain requests, call `execute_code`."""

from typing import Any

import httpx
import pytest

from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.real_clients import run_python
from tests.wires.wired import ENDLESS, SECRET

pytestmark = pytest.mark.engine

PATH = "/wires/vellum/v1/execute-code"
TYPES = {str: "STRING", int: "NUMBER", float: "NUMBER", dict: "JSON", list: "JSON"}


def call(
    code: str, output: str = "JSON", runtime: str = "PYTHON_3_11_6", packages: Any = (), **inputs: Any
) -> dict[str, Any]:
    values = [{"type": TYPES[type(value)], "name": name, "value": value} for name, value in inputs.items()]
    return {"code": code, "runtime": runtime, "input_values": values, "packages": list(packages), "output_type": output}


def returns(value: str) -> str:
    return f"def main():\n    print('said')\n    return {value}\n"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        ("{'score': 1, 'more': [1]}", "JSON", {"score": 1, "more": [1]}),
        ("'{\"score\": 1}'", "JSON", {"score": 1}),
        ("'plain'", "JSON", "plain"),
        ("None", "JSON", None),
        ("'text'", "STRING", "text"),
        ("None", "STRING", ""),
        ("2", "NUMBER", 2),
        ("True", "NUMBER", 1.0),
        ("'0.5'", "NUMBER", 0.5),
        ("None", "NUMBER", 0.0),
        ("'{\"a\": [1e400, NaN]}'", "JSON", '{"a": [1e400, NaN]}'),
        ("'{\"a\": [1e400]}'", "JSON", '{"a": [1e400]}'),
        ("[{'role': 'USER', 'text': 'hi'}]", "CHAT_HISTORY", [{"role": "USER", "text": "hi"}]),
        ("[1, 2]", "ARRAY", [1, 2]),
    ],
)
def test_a_value_has_the_output_type(client: httpx.Client, value: str, kind: str, stored: Any) -> None:
    answer = client.post(PATH, json=call(returns(value), kind))
    assert (answer.status_code, answer.json()) == (200, {"log": "said\n", "output": {"type": kind, "value": stored}})


def test_failures_are_400_with_the_log(client: httpx.Client) -> None:
    def refused(body: dict[str, Any]) -> str:
        answer = client.post(PATH, json=body)
        assert (answer.status_code, set(answer.json())) == (400, {"message", "detail", "log"}), answer.text
        return str(answer.json()["message"])

    assert refused(call(returns("{'a': 1}"), "NUMBER")) == "Expected an output of type 'float', but received 'dict'"
    for text in ("nan", "1e400"):
        assert refused(call(returns(repr(text)), "NUMBER")) == "Expected an output of type 'float', but received 'str'"
    assert (
        refused(call("def main(a):\n    return a\n"))
        == "`main` needs `a`, which the row does not have; the row has: none"
    )
    assert refused(call("def main():\n    return {}['x']\n")) == "KeyError: 'x' (line 2)"
    assert refused(call("def main(:", a="x"))
    assert refused(call("x = 1\n"))
    assert "output_type" in refused(call(returns("1"), "IMAGE"))
    for strange in ({"output_type": []}, {"packages": 3}, {"packages": [3]}):
        assert "must be" in refused({**call(returns("1")), **strange})
    assert "runtime" in refused(call(returns("1"), runtime="RUBY_1"))
    assert "names a repository" in refused(
        call(returns("1"), packages=[{"name": "a", "version": "1", "repository": "r"}])
    )
    assert refused(call(returns("1"), packages=[{"name": "numpy", "version": ">=2"}]))
    assert client.post(PATH, content=b"x" * (17 << 20)).status_code == 413


def test_wrong_keys_and_endless_loops_are_refused(keyed: Keyed) -> None:
    loop = call(f"def main():\n    {ENDLESS}\n")
    answer = httpx.post(f"{keyed.url}{PATH}", json=loop, headers={"X-API-KEY": SECRET}, timeout=10)
    assert (answer.status_code, "1" in answer.json()["message"]) == (400, True)
    assert httpx.post(f"{keyed.url}{PATH}", json=loop, headers={"X-API-KEY": "no"}).status_code == 401


PROGRAM = """
import json, os, sys
from vellum import CodeExecutionPackage, NumberInput, StringInput
from vellum.core.api_error import ApiError
from vellum.workflows.vellum_client import create_vellum_client
def run(code, output="JSON", runtime="PYTHON_3_11_6", packages=(), inputs=()):
    try:
        got = client.execute_code(code=code, runtime=runtime, input_values=list(inputs), packages=list(packages), output_type=output)
        return [got.log, got.output.type, got.output.value]
    except ApiError as error:
        return [error.status_code, error.body]
a = [StringInput(name="a", value="x"), NumberInput(name="b", value=2)]
def all_runs():
    return [
    run("def main(a, b):\\n    print('said')\\n    return {'score': b, 'a': a}\\n", inputs=a),
    run("export default function main(inputs: {a: string}) { return inputs.a.length; }", "NUMBER", "TYPESCRIPT_5_3_3", inputs=a),
    run("import six\\ndef main(a, b):\\n    return six.__version__\\n", "STRING", packages=[CodeExecutionPackage(name="six", version="1.17.0")], inputs=a),
    run("def main(a, b):\\n    raise ValueError('no')\\n", inputs=a),
    ]

found = []
for url, key in zip(sys.argv[1::2], sys.argv[2::2]):
    os.environ |= {"VELLUM_API_URL": url, "VELLUM_API_KEY": key}
    client = create_vellum_client()
    found.append(all_runs())
print(json.dumps(found))
"""


@pytest.mark.differential
def test_vellum_s_own_client_runs_code(keyed: Keyed, host: Server) -> None:
    asked = [
        (f"{host.url}/wires/vellum", "any"),
        (f"{keyed.url}/wires/vellum", keyed.key),
        (f"{keyed.url}/wires/vellum", "no"),
    ]
    *served, (refused, *_) = run_python("vellum", PROGRAM, *(text for one in asked for text in one))
    for python, typescript, six, raised in served:
        assert python == ["said\n", "JSON", {"score": 2, "a": "x"}]
        assert typescript == ["", "NUMBER", 1]
        assert six == ["", "STRING", "1.17.0"]
        assert (raised[0], raised[1]["message"]) == (400, "ValueError: no (line 2)")
    assert refused[0] == 401
