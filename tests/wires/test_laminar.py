"""Laminar's API (wire `laminar`): requests as Laminar's server and pages send them."""

from typing import Any

import httpx
import pytest

from tests.keyed import bearer
from tests.wires.conftest import Keyed
from tests.wires.wired import ENDLESS, SECRET

pytestmark = pytest.mark.engine

PATH = "/wires/laminar"


def ask(client: httpx.Client, code: str, given: Any = "Paris") -> Any:
    answer = client.post(PATH, json={"definition": {"function_code": code}, "input": given})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def main(output):\n    print('said')\n    return float(output == 'Paris')\n", {"score": 1.0}),
        ("def of_any_name(value):\n    return len(value)\n", {"score": 5}),
        ("async def main(output):\n    return 0.5\n", {"score": 0.5}),
        ("def helper(a, b):\n    return a\ndef main(output):\n    return helper(1, 2)\n", {"score": 1}),
        ("def main(output):\n    return None\n", {"score": None}),
        (
            "def main(output):\n    return True\n",
            {"error": "the function returned True; a score must be a number or None"},
        ),
        ("def main(output):\n    return {}['x']\n", {"error": "KeyError: 'x' (line 2)"}),
        ("x = 1\n", {"error": "the code defines no function with one parameter: write def main(output): ..."}),
        (
            "def main(output):\n    return float('nan')\n",
            {"error": "the function returned nan; a score must be finite"},
        ),
    ],
)
def test_code_gives_a_score_or_an_error(client: httpx.Client, code: str, told: dict[str, Any]) -> None:
    assert ask(client, code) == told


def test_the_function_gets_the_output_unchanged(client: httpx.Client) -> None:
    code = "def main(output):\n    return len(output['messages'])\n"
    assert ask(client, code, {"messages": [None, {"content": "é"}]}) == {"score": 2}


def test_invalid_requests_wrong_keys_and_endless_loops_are_refused(client: httpx.Client, keyed: Keyed) -> None:
    assert client.post(PATH, json={"definition": {}}).json() == {
        "error": "definition.function_code is missing, or is not a string"
    }
    assert client.post(PATH, content=b"x" * (9 << 20)).status_code == 413
    body = {"definition": {"function_code": f"def main(output):\n    {ENDLESS}\n"}, "input": 1}
    endless = httpx.post(f"{keyed.url}{PATH}", json=body, headers=bearer(SECRET), timeout=10)
    assert (endless.status_code, "did not finish" in endless.json()["error"]) == (200, True)
    assert httpx.post(f"{keyed.url}{PATH}", json=body, headers=bearer("no")).status_code == 401
