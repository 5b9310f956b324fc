"""Sends every case of a dialect through the wire of its platform: the response must be that of the platform's own
executor.

The cases for Langfuse, Opik and OpenAI are sent in the test files of their wires. Laminar's executor is not public, so
it has no cases except in the test file of its wire.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import pytest

from evaluator_host.types.evaluator import Evaluator, Language
from tests.contract.cases import CASES, Case
from tests.contract.cases.case import ANY as UNTOLD
from tests.dialects.cases import ANY, NativeCase
from tests.differential.packages import PROGRAMS, real_python
from tests.probe import NODE
from tests.server import Server
from tests.wires.wired import cases_of, sent

pytestmark = pytest.mark.engine

T = TypeVar("T")
ERRORS = ("user_exception", "load_error", "syntax_error", "entry_not_found", "missing_input", "timeout")


def at_once(work: Callable[[T], Any], given: Iterable[T]) -> list[Any]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, given))


# Coze Loop: templates like its own, into which the code and the row are inserted

COZE_PYTHON = """
import asyncio
import json
from dataclasses import dataclass

@dataclass
class EvalOutput:
    score: float
    reason: str

{code}

found = exec_evaluation(json.loads({row!r}))
if asyncio.iscoroutine(found):
    found = asyncio.run(found)
number = not isinstance(found.score, bool) and isinstance(found.score, (int, float, str))
print("__COZE_RETURN_VAL_START__")
print(json.dumps({{"score": float(found.score) if number else None, "reason": found.reason}}))
print("__COZE_RETURN_VAL_END__")
"""
COZE_JAVASCRIPT = """
globalThis.EvalOutput = class {{ constructor(score, reason) {{ this.score = score; this.reason = reason; }} }};
{code}
let told = {{ score: null, reason: null }};
try {{
  const found = exec_evaluation({row});
  told = {{ score: found.score, reason: found.reason }};
}} catch (error) {{
  console.error(String(error));
}}
console.log(JSON.stringify(told));
"""


def test_coze_loop(client: httpx.Client) -> None:
    cases = [case for case in cases_of("coze") if "evaluate_dataset_fields" in case.row.variables]
    assert len(cases) >= 8

    def ask(case: NativeCase) -> tuple[Any, str, Any]:
        python = case.language is Language.PYTHON
        row = json.dumps(case.row.variables)
        code = (COZE_PYTHON if python else COZE_JAVASCRIPT).format(code=sent(case), row=row)
        body = {
            "language": "python" if python else "js",
            "code": code,
            # milliseconds for the whole call; long, since eight new sandboxes share the processor here
            "timeout": 60_000,
            "priority": "normal",
            "ext": {},
        }
        answer = client.post("/wires/coze/run_code", json=body).json()
        return json.loads(answer["output"]["ret_val"] or "null"), answer["output"]["stderr"], answer.get("error")

    for case, (stored, stderr, error) in zip(cases, at_once(ask, cases), strict=True):
        failed = error is not None or "Error" in stderr
        assert failed == (case.status == "failed"), (case.id, stored, stderr, error)
        if not failed and case.native is not ANY:
            assert (stored["score"], stored["reason"]) == (case.native[0]["score"], case.native[0]["reason"]), case.id
        elif not failed and case.score is not ANY:
            assert stored["score"] == case.score, case.id


# promptfoo: a webhook for each assertion


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_promptfoo(host: Server, part: int) -> None:
    """promptfoo's cases have the same outcome here as with promptfoo.

    The test sends all Python cases, but only one JavaScript case for each outcome, since both languages use the same
    wire and `tests/dialects` has every case.
    """
    fitting = [case for case in cases_of("promptfoo") if {"output", "context"} <= case.row.variables.keys()]
    # the request names the contract, so a file with several functions needs an entry
    fitting = [case for case in fitting if "several_entries" not in case.warnings]
    javascript = {(case.status, case.error): case for case in fitting if case.language is not Language.PYTHON}
    all_cases = [*(case for case in fitting if case.language is Language.PYTHON), *javascript.values()]
    assert len(all_cases) > 30
    cases = all_cases[part::3]

    def ask(numbered: tuple[int, NativeCase]) -> httpx.Response:
        number, case = numbered
        name = f"promptfoo-{part}-{number}"
        body = evaluator_body(case.evaluator) | {"name": name, "contract": "promptfoo"}
        made = host.client.post("/v1/evaluators", json=body)
        if made.status_code == 422:  # code that cannot be stored has no webhook
            return made
        assert made.status_code == 201, (case.id, made.text)
        for _ in range(20):  # the test tries again, as promptfoo does
            answer = host.client.post(f"/hooks/{name}", json=case.row.variables, timeout=20)
            if answer.status_code < 429 and not answer.json().get("reason", "").startswith("timeout"):
                break
        return answer

    for case, answer in zip(cases, at_once(ask, enumerate(cases)), strict=True):
        told = answer.json()
        if answer.status_code == 422:
            assert case.error in ("syntax_error", "entry_ambiguous"), (case.id, told)
            continue
        assert answer.status_code == 200, (case.id, told)
        if case.status == "failed":
            assert (told["pass"], told["score"]) == (False, 0), (case.id, told)
        if case.native is not ANY:
            native = case.native[0]
            assert (told["pass"], told["score"]) == (native["pass"], native["score"]), (case.id, told)
            assert told["reason"] == native["reason"], case.id


def evaluator_body(evaluator: Evaluator) -> dict[str, Any]:
    settings = {"entry": evaluator.settings.entry, "config": evaluator.settings.config}
    body = {"code": evaluator.code, "language": evaluator.language.value, "threshold": evaluator.threshold}
    return {**body, "settings": {name: value for name, value in settings.items() if value is not None}}


# Phoenix and Agenta: scripts in Daytona's sandboxes

PHOENIX = """
import json
{code}
row = json.loads({row!r})
names = evaluate.__code__.co_varnames[: evaluate.__code__.co_argcount]
print("<<value")
print(json.dumps({{"value": evaluate(**{{name: row[name] for name in names if name in row}})}}))
print("value>>")
"""
PHOENIX_TYPESCRIPT = """
{code}
Promise.resolve(evaluate(JSON.parse({row!r}))).then((value: unknown) => console.log(JSON.stringify({{ value }})));
"""
API = "/wires/daytona/api/sandbox"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(2))
def test_phoenix(client: httpx.Client, part: int) -> None:
    """Phoenix's scripts end in a sandbox as they end in a separate process: with the same exit code, the same output,
    and the same last line of the error.
    """
    python = [case for case in cases_of("phoenix") if "def evaluate(" in case.code]
    typescript = [case for case in cases_of("phoenix") if case.language is not Language.PYTHON]
    assert (len(python) > 20, len(typescript) > 1) == (True, True)
    sandbox = client.post(API, json={"labels": {"code-toolbox-language": "python"}}).json()
    address = f"{sandbox['toolboxProxyUrl']}/{sandbox['id']}/process/code-run"

    def ask(script: Script) -> tuple[int, str]:
        answer = client.post(address, json={"code": script.code, "language": script.language, "timeout": 45}).json()
        return answer["exitCode"], ends(answer["exitCode"], answer["result"])

    def run(script: Script) -> tuple[int, str]:
        python = [sys.executable, "-c", script.code]
        command = (
            python if script.language == "python" else [str(NODE), "--input-type=module-typescript", "-e", script.code]
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, ends(done.returncode, done.stdout + done.stderr)

    python, typescript = python[part::2], typescript[part::2]
    cases = python + typescript
    scripts = [
        Script(template.format(code=sent(case), row=json.dumps(case.row.variables)), case.language.value)
        for template, some in ((PHOENIX, python), (PHOENIX_TYPESCRIPT, typescript))
        for case in some
    ]
    for case, found, due in zip(cases, at_once(ask, scripts), at_once(run, scripts), strict=True):
        assert found == due, case.id


@dataclass(frozen=True)
class Script:
    code: str
    language: str


def ends(exit_code: int, text: str) -> str:
    """Return a script's output; if it failed, only the last line, since tracebacks name files."""
    return text if exit_code == 0 else text.strip().rpartition("\n")[2]


AGENTA = """
import asyncio, json, os, sys, warnings
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DAYTONA_SNAPSHOT": "default"}
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import agenta_cases
from agenta.sdk.engines.running.handlers import auto_custom_code_run_v0 as handler
run = getattr(handler, "__wrapped__", handler)

async def score(code, version, inputs, outputs):
    try:
        return {"value": await run({"code": code, "version": version}, inputs, outputs, agenta_cases.TRACE)}
    except Exception as error:
        return {"failed": type(error).__name__}

async def main():
    found = []
    for runner in ("local", "daytona"):
        os.environ["AGENTA_SERVICES_CODE_SANDBOX_RUNNER"] = runner
        cases = agenta_cases.cases().items()
        found.append(dict(zip([name for name, _ in cases], await asyncio.gather(*(score(*case) for _, case in cases)))))
    with open(sys.argv[2], "w") as file:
        json.dump(found, file)
    os._exit(0)  # its threads are slow to end

asyncio.run(main())
"""


@pytest.mark.differential
def test_agenta_s_own_runner(host: Server, tmp_path: Any) -> None:
    """Agenta's runner for Daytona, which calls this host, gets the same results as Agenta's runner in its own process."""
    found = tmp_path / "found.json"
    command = [str(real_python(PROGRAMS / "agenta.txt")), "-c", AGENTA, str(PROGRAMS), str(found)]
    daytona = {"DAYTONA_API_URL": f"{host.url}/wires/daytona/api", "DAYTONA_API_KEY": "any"}
    done = subprocess.run(
        command, env={**os.environ, **daytona}, cwd=tmp_path, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr[-3000:]
    local, remote = json.loads(found.read_text())
    assert len(local) > 60
    differing = {name: (local[name], remote[name]) for name in local if local[name] != remote[name]}
    assert differing == {}


# Vellum: the cases of contract `main`


def test_vellum(client: httpx.Client) -> None:
    fitting = [case for case in CASES if "main" in (case.expected.contract, case.contract) and fits_vellum(case)]
    cases = [case for case in fitting if case.language is Language.PYTHON]
    for language in (Language.JAVASCRIPT, Language.TYPESCRIPT):  # both languages are sent as TypeScript
        cases += [case for case in fitting if case.language is language][:2]
    assert len(cases) > 30

    def ask(case: Case) -> httpx.Response:
        given = case.variables if case.variables is not None else {"completion": case.outputs}
        values = [{"type": "JSON", "name": name, "value": value} for name, value in given.items()]
        runtime = "PYTHON_3_11_6" if case.language is Language.PYTHON else "TYPESCRIPT_5_3_3"
        body = {"code": case.code, "runtime": runtime, "input_values": values, "output_type": "JSON", "packages": []}
        return client.post("/wires/vellum/v1/execute-code", json=body)

    for case, answer in zip(cases, at_once(ask, cases), strict=True):
        told = answer.json()
        assert answer.status_code == (400 if case.expected.error else 200), (case.id, told)
        if case.expected.error is None and case.expected.score is not None:
            value = told["output"]["value"]
            due = case.expected.value
            assert value == due if due is not UNTOLD else score_of(value) == case.expected.score, (case.id, value)


def fits_vellum(case: Case) -> bool:
    """Whether a case must have the same result in Vellum as with contract `main`. Some do not, because Vellum accepts
    any JSON as a value, even without a score.
    """
    has_values = case.variables is not None or "completion" in case.code
    return case.entry is None and has_values and (case.expected.error is None or case.expected.error in ERRORS)


def score_of(value: Any) -> Any:
    score = value.get("score") if isinstance(value, dict) else value
    return float(score) if isinstance(score, str | bool) else score
