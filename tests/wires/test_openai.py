"""OpenAI's API (wire `openai`): its own clients for Python and JavaScript, and plain requests, call graders."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.dialects.cases import ANY, NativeCase
from tests.keyed import bearer
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.real_clients import run_node
from tests.wires.wired import ENDLESS, SECRET, cases_of, sent

pytestmark = pytest.mark.engine

PATH = "/wires/openai/v1/fine_tuning/alpha/graders"
EXACT = "def grade(sample, item):\n    return float(sample['output_text'] == item['wanted'])\n"
RAISES = "def grade(sample, item):\n    return item['none']\n"
LOOP = f"def grade(sample, item):\n    {ENDLESS}\n"
ITEM = {"wanted": "Paris", "deep": {"list": ["a", {"b": "Par"}]}}


def python(source: str, name: str = "g", **more: Any) -> dict[str, Any]:
    return {"type": "python", "name": name, "source": source, **more}


def check(operation: str, given: str = "{{ sample.output_text }}", wanted: str = "{{item.wanted}}") -> dict[str, Any]:
    return {"type": "string_check", "name": "c", "operation": operation, "input": given, "reference": wanted}


def similar(metric: str, given: str, wanted: str) -> dict[str, Any]:
    return {"type": "text_similarity", "name": "t", "evaluation_metric": metric, "input": given, "reference": wanted}


def multi(formula: str, **graders: Any) -> dict[str, Any]:
    return {"type": "multi", "name": "m", "graders": graders, "calculate_output": formula}


def run(client: httpx.Client, grader: dict[str, Any], sample: str = "Paris", item: Any = ITEM) -> Any:
    answer = client.post(f"{PATH}/run", json={"grader": grader, "model_sample": sample, "item": item})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_every_case_ends_as_by_openai(client: httpx.Client) -> None:
    """Every case has the same outcome as in OpenAI's grader.

    The test runs only the cases with a sample that `model_sample` can make from a string.
    """
    cases = [
        case for case in cases_of("openai_grader") if "output_text" in (case.row.variables or {}).get("sample", {})
    ]
    assert len(cases) >= 8

    def grade(case: NativeCase) -> Any:
        variables = case.row.variables
        return run(client, python(sent(case)), variables["sample"]["output_text"], variables.get("item", {}))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(grade, cases))
    for case, found in zip(cases, answers, strict=True):
        sample = case.row.variables["sample"]
        failed = found["metadata"]["errors"]["python_grader_runtime_error"]
        assert failed == (case.status == "failed"), (case.id, found)
        if (
            not failed
            and case.native is not ANY
            and set(sample) <= {"output_text", "output_json", "output_tools", "choices"}
        ):
            assert {"reward": found["reward"]} == case.native[0], case.id


def test_graders_without_code(client: httpx.Client) -> None:
    def reward(grader: dict[str, Any], sample: str = "Paris") -> float:
        return float(run(client, grader, sample)["reward"])

    assert [reward(check(one)) for one in ("eq", "ne", "like", "ilike")] == [1, 0, 1, 1]
    assert [reward(check(one), "in PARIS") for one in ("eq", "ne", "like", "ilike")] == [0, 1, 0, 1]
    assert reward(check("eq", "{{item.deep.list[1].b}}", "Par")) == 1
    assert reward(check("eq", "{{item.deep.list}}", '["a", {"b": "Par"}]')) == 1
    assert reward(check("eq", "{{sample.output_json.a}}", "3"), '{"a": 3}') == 1
    assert reward(similar("fuzzy_match", "kitten", "sitting")) == pytest.approx(8 / 13)
    assert reward(similar("rouge_1", "the cat sat", "The cat slept")) == pytest.approx(2 / 3)
    assert reward(similar("rouge_2", "the cat sat", "the cat slept")) == pytest.approx(1 / 2)
    assert reward(similar("rouge_l", "the cat sat", "cat the sat")) == pytest.approx(2 / 3)
    assert reward(similar("bleu", "a b c d e", "a b c d e")) == pytest.approx(1)
    assert reward(similar("gleu", "a b c d", "a b c x")) == pytest.approx(6 / 10)
    assert reward(similar("bleu", "", "a")) == 0
    unknown = run(client, check("eq", "{{item.none}}"))
    assert (unknown["reward"], unknown["metadata"]["errors"]["invalid_variable_error"]) == (0, True)


def test_a_multi_grader_computes_its_formula(client: httpx.Client) -> None:
    found = run(client, multi("max(a, 0.2) + b^2 / 4 - min(a, b)", a=python(EXACT), b=check("eq")))
    assert found["reward"] == pytest.approx(0.25)
    assert found["sub_rewards"] == {"a": 1, "b": 1}
    for formula, error in (
        ("a +", "formula_parse_error"),
        ("c", "invalid_variable_error"),
        ("a / 0", "formula_parse_error"),
        ("__import__('os')", "formula_parse_error"),
        ("9^9^9^9", "formula_parse_error"),
    ):
        failed = run(client, multi(formula, a=check("eq")))
        assert (failed["reward"], failed["metadata"]["errors"][error]) == (0, True), formula
    raised = run(client, multi("a", a=python(RAISES)))
    assert raised["metadata"]["errors"]["python_grader_runtime_error"]


@pytest.mark.parametrize(
    ("grader", "param"),
    [
        (None, "grader"),
        ({"type": "score_model", "name": "s"}, "grader.type"),
        (python(3), "grader.source"),  # type: ignore[arg-type]
        (python(EXACT, image_tag="2020-01-01"), "grader.image_tag"),
        (check("near"), "grader.operation"),
        (similar("cosine", "a", "b"), "grader.evaluation_metric"),
        (multi("a", a={"type": "multi"}), "grader.graders.a.type"),
        ({"type": "multi", "name": "m", "calculate_output": "1"}, "grader.graders"),
    ],
)
def test_an_invalid_grader_is_named(client: httpx.Client, grader: Any, param: str) -> None:
    for route, body in (("validate", {"grader": grader}), ("run", {"grader": grader, "model_sample": ""})):
        answer = client.post(f"{PATH}/{route}", json=body)
        assert answer.status_code == 400, answer.text
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert (answer.json()["error"]["param"], answer.json()["error"]["type"]) == (param, "invalid_request_error")


def test_validate_loads_code_and_tries_formulas(client: httpx.Client) -> None:
    def validated(grader: dict[str, Any]) -> httpx.Response:
        return client.post(f"{PATH}/validate", json={"grader": grader})

    for right in (python(EXACT), check("eq"), multi("a", a=python(EXACT))):
        assert validated(right).json() == {"grader": right}
    for wrong, param in (
        (python("def grade("), "grader.source"),
        (multi("b", a=check("eq")), "grader.calculate_output"),
    ):
        assert validated(wrong).json()["error"]["param"] == param


def test_wrong_keys_endless_loops_and_large_bodies_are_refused(keyed: Keyed) -> None:
    def ask(source: str, key: str) -> httpx.Response:
        body = {"grader": python(source), "model_sample": "Paris", "item": ITEM}
        return httpx.post(f"{keyed.url}{PATH}/run", json=body, headers=bearer(key), timeout=10)

    assert ask(EXACT, SECRET).json()["reward"] == 1
    assert (ask(EXACT, "sk-no").status_code, ask(EXACT, "sk-no").json()["error"]["code"]) == (401, "invalid_api_key")
    endless = ask(LOOP, keyed.key).json()
    assert endless["metadata"]["errors"]["python_grader_runtime_error"]
    assert ask("#" * 70_000, keyed.key).status_code == 413


@pytest.mark.long
def test_openai_s_own_client_runs_and_validates(host: Server) -> None:
    import openai  # noqa: PLC0415 - the import takes half a second

    with openai.OpenAI(api_key="any", base_url=f"{host.url}/wires/openai/v1", max_retries=0) as client:
        graders = client.fine_tuning.alpha.graders
        found = graders.run(grader=python(EXACT), model_sample="Paris", item=ITEM)
        assert (found.reward, found.metadata.type, found.metadata.errors.other_error) == (1, "python", False)
        raised = graders.run(grader=python(RAISES), model_sample="Paris", item=ITEM)
        assert raised.metadata.errors.python_grader_runtime_error_details == "KeyError: 'none' (line 2)"
        assert graders.validate(grader=python(EXACT)).grader.name == "g"
        with pytest.raises(openai.BadRequestError, match="asks a model"):
            graders.validate(grader={"type": "score_model", "name": "s", "model": "m", "input": []})


NODE = """
import OpenAI from "openai";
const [url, grader, item] = [process.argv[2], JSON.parse(process.argv[3]), JSON.parse(process.argv[4])];
const client = new OpenAI({ apiKey: "any", baseURL: url, maxRetries: 0 });
const found = await client.fineTuning.alpha.graders.run({ grader, model_sample: "Paris", item });
const checked = await client.fineTuning.alpha.graders.validate({ grader });
let refused = null;
try { await client.fineTuning.alpha.graders.validate({ grader: { type: "score_model", name: "s" } }); } catch (error) { refused = error.status; }
console.log(JSON.stringify([found.reward, checked.grader.name, refused]));
"""


@pytest.mark.differential
def test_openai_s_client_for_javascript_does_too(host: Server) -> None:
    found = run_node("clients", NODE, f"{host.url}/wires/openai/v1", json.dumps(python(EXACT)), json.dumps(ITEM))
    assert found == [1, "g", 400]


@pytest.mark.differential
def test_a_package_of_the_image_is_there_when_the_code_imports_it(client: httpx.Client) -> None:
    source = "from rapidfuzz import fuzz\n\ndef grade(sample, item):\n    return fuzz.ratio(sample['output_text'], item['wanted']) / 100\n"
    body = {"grader": python(source, image_tag="2025-05-08"), "model_sample": "kitten", "item": {"wanted": "sitting"}}
    answer = client.post(f"{PATH}/run", json=body, timeout=200).json()
    assert answer["reward"] == pytest.approx(8 / 13), answer
