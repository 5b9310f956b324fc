"""Coze Loop's API (wire `coze`): scripts like those that Coze Loop's templates make from a user's code and a row."""

import json
from typing import Any

import httpx
import pytest

from tests.keyed import bearer
from tests.wires.conftest import Keyed
from tests.wires.wired import ENDLESS, SECRET

pytestmark = pytest.mark.engine

PATH = "/wires/coze/run_code"


def run(client: httpx.Client, code: str, language: str = "python", **more: Any) -> dict[str, Any]:
    body = {"language": language, "code": code, "timeout": 5000, "priority": "normal", "ext": {"k": "v"}, **more}
    answer = client.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_value_is_taken_out_of_the_output(client: httpx.Client) -> None:
    found = run(
        client,
        "print('before')\nprint('__COZE_RETURN_VAL_START__')\nprint('{}')\nprint('__COZE_RETURN_VAL_END__')\nprint('after')",
    )
    assert found["output"] == {"stdout": "before\nafter\n", "stderr": "", "ret_val": "{}"}
    assert set(found["metadata"]) >= {"task_id", "instance_id", "duration"}
    found = run(client, "console.log('first'); console.log(JSON.stringify({score: 1}));", "js")
    assert (found["output"]["ret_val"], found["output"]["stdout"]) == ('{"score":1}', "first")


def test_a_syntax_check_is_a_script_too(client: httpx.Client) -> None:
    check = "import ast, json\ntry:\n    ast.parse('x = (')\n    told = {'valid': True}\nexcept SyntaxError as error:\n    told = {'valid': False, 'error': {'message': error.msg, 'line': error.lineno}}\nprint('__COZE_RETURN_VAL_START__')\nprint(json.dumps(told))\nprint('__COZE_RETURN_VAL_END__')\n"
    assert json.loads(run(client, check)["output"]["ret_val"])["valid"] is False
    check = "try { new Function('const = ;'); console.log('{\"valid\":true}'); } catch (error) { console.log(JSON.stringify({valid: false})); }"
    assert json.loads(run(client, check, "javascript")["output"]["ret_val"]) == {"valid": False}


def test_failures_are_200_with_an_error(client: httpx.Client) -> None:
    raised = run(client, "{}['x']")
    assert raised["error"] == "execution failed: KeyError: 'x'"
    assert "KeyError" in raised["output"]["stderr"]
    assert run(client, "print(1)", timeout=10**400).get("error") is None
    assert run(client, ENDLESS, timeout=500)["error"] == "timeout: the row did not finish within 0.5 s"
    assert client.post(PATH, json={"language": "ruby", "code": "x"}).json()["error"] == "unsupported language: ruby"
    assert client.post(PATH, content=b"{").status_code == 200
    assert client.post(PATH, content=b"x" * (9 << 20)).status_code == 200
    assert client.get("/wires/coze/health").status_code == 200


@pytest.mark.long
def test_the_key_is_in_the_path(keyed: Keyed) -> None:
    body = {"language": "python", "code": "print(1)"}
    assert httpx.post(f"{keyed.url}/wires/coze/key/{keyed.key}/run_code", json=body).status_code == 200
    assert httpx.post(f"{keyed.url}{PATH}", json=body, headers=bearer(SECRET)).status_code == 200
    assert httpx.post(f"{keyed.url}{PATH}", json=body).status_code == 401
