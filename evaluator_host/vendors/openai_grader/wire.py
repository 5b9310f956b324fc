"""Serves OpenAI's routes `fine_tuning/alpha/graders/run` and `validate`, for graders without a model (wire `openai`).

Sources: the types of openai 3.54.0 (`fine_tuning/alpha/grader_*`, `graders/*`), OpenAI's guide on graders.
"""

import re
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire, described
from evaluator_host.types.errors import Busy, HostError, InvalidRequest, NotFound, Problem, Refused, Unauthorized
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Limits, Row
from evaluator_host.types.json_values import InvalidJson, decode_large
from evaluator_host.types.outcome import HOST_FAULTS, EvaluationError, EvaluationResult

_GRADERS: Final = "/v1/fine_tuning/alpha/graders"
_IMAGE: Final = "2025-05-08"
_PINS: Final = {  # packages in OpenAI's image; the host installs those that the code imports
    "numpy": "numpy==2.2.4",
    "scipy": "scipy==1.15.2",
    "sympy": "sympy==1.13.3",
    "pandas": "pandas==2.2.3",
    "rapidfuzz": "rapidfuzz==3.10.1",
    "sklearn": "scikit-learn==1.6.1",
    "deepdiff": "deepdiff==8.4.2",
    "jsonschema": "jsonschema==4.23.0",
    "pydantic": "pydantic==2.10.6",
    "yaml": "pyyaml==6.0.2",
    "nltk": "nltk==3.9.1",
    "sqlparse": "sqlparse==0.5.3",
    "rdkit": "rdkit==2024.9.6",
    "skbio": "scikit-bio==0.6.3",
    "ast_grep_py": "ast-grep-py==0.36.2",
}
_IMAGE_MB: Final = 1024
_IMPORT: Final = re.compile(r"^[ \t]*+(?:import|from)[ \t]+([\w., \t]+)", re.MULTILINE)
_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "python": {"source": str},
    "string_check": {"input": str, "reference": str, "operation": ("eq", "ne", "like", "ilike")},
    "text_similarity": {
        "input": str,
        "reference": str,
        "evaluation_metric": ("fuzzy_match", "bleu", "gleu", "rouge_l", *(f"rouge_{size}" for size in range(1, 6))),
    },
    "multi": {"calculate_output": str},
}
_NEEDS_MORE: Final = {
    "score_model": "it asks a model",
    "label_model": "it asks a model",
    "cosine": "it asks a model for embeddings",
    "meteor": "it needs WordNet",
}
_ERRORS: Final = (
    "formula_parse_error",
    "invalid_variable_error",
    "model_grader_parse_error",
    "model_grader_refusal_error",
    "model_grader_server_error",
    "other_error",
    "python_grader_runtime_error",
    "python_grader_server_error",
    "sample_parse_error",
    "truncated_observation_error",
    "unresponsive_reward_error",
)
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Graded:
    """The reward of one grader for a sample, and its errors.

    Attributes:
      reward: The grader's score; 0 if it failed.
      errors: Details of each error, by OpenAI's name for the error.
    """

    reward: float
    errors: dict[str, str]


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the routes that run a grader on one sample, and that check a grader."""

    async def run(request: Request) -> Response:
        body = await calls.read(request)
        grader = _grader(body.get("grader"), "grader")
        if not isinstance(body.get("model_sample"), str):
            raise _invalid("model_sample", "is missing, or is not a string")
        item = body.get("item") or {}
        if not isinstance(item, dict):
            raise _invalid("item", "is not an object")
        began = time.perf_counter()
        names = {"item": item, "sample": await _sample(body["model_sample"])}
        found, parts = await _grade(calls, request, grader, names)
        return json_response(_told(grader, found, parts, seconds=time.perf_counter() - began))

    async def validate(request: Request) -> Response:
        grader = _grader((await calls.read(request)).get("grader"), "grader")
        with calls.audited(request, "validate"):
            await _require_valid(calls, request, grader, "grader")
        return json_response({"grader": grader})

    path = calls.wire.path + _GRADERS
    return [Route(f"{path}/run", run, methods=["POST"]), Route(f"{path}/validate", validate, methods=["POST"])]


def _grader(given: Any, path: str, *, inner: bool = False) -> dict[str, Any]:
    """Check the fields of a grader, and return the grader. An `inner` grader cannot be a multi-grader.

    Raises:
      InvalidRequest: a field is not valid, or the grader needs something that this host does not have.
    """
    if not isinstance(given, dict):
        raise _invalid(path, "is missing, or not an object")
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS or (inner and kind == "multi"):
        why = _NEEDS_MORE.get(str(kind), "the type must be one of " + ", ".join(_FIELDS))
        raise _invalid(f"{path}.type", f"a grader of type {str(kind)[:40]!r} does not run here: {why}")
    if not isinstance(given.get("name"), str):
        raise _invalid(f"{path}.name", "is missing, or is not a string")
    for name, wanted in _FIELDS[kind].items():
        value = given.get(name)
        if wanted is str and not isinstance(value, str):
            raise _invalid(f"{path}.{name}", "is missing, or is not a string")
        if isinstance(wanted, tuple) and value not in wanted:
            why = _NEEDS_MORE.get(str(value), "it must be one of " + ", ".join(wanted))
            raise _invalid(f"{path}.{name}", f"{str(value)[:40]!r} does not run here: {why}")
    if given.get("image_tag") not in (None, _IMAGE):
        raise _invalid(f"{path}.image_tag", f"{str(given['image_tag'])[:40]!r} is not known; use {_IMAGE}")
    if kind == "multi":
        _parts(given, path)
    return given


def _parts(multi: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
    """Return the graders in a multi-grader by name.

    A request may contain them as an object, a list, or a single grader.
    """
    given = multi.get("graders")
    if isinstance(given, dict) and isinstance(given.get("type"), str):
        given = [given]
    if isinstance(given, list):
        given = {str(one.get("name")) if isinstance(one, dict) else "": one for one in given}
    if not isinstance(given, dict) or not 1 <= len(given) <= _MOST:
        raise _invalid(f"{path}.graders", f"there must be 1 to {_MOST} graders")
    return {name: _grader(one, f"{path}.graders.{name}", inner=True) for name, one in given.items()}


async def _sample(text: str) -> dict[str, Json]:
    sample: dict[str, Json] = {"output_text": text, "output_tools": [], "choices": []}
    try:
        return {**sample, "output_json": await decode_large(text.encode("utf-8", "replace"))}
    except InvalidJson:
        return sample


async def _grade(
    calls: WireCalls, request: Request, grader: dict[str, Any], names: dict[str, Json]
) -> tuple[Graded, dict[str, Graded]]:
    """Return a grader's result for a sample, and by name the results of the graders inside a multi-grader."""
    if grader["type"] == "python":
        row = Row(variables=names)
        return _of(await calls.evaluate(request, _evaluator(grader), row), of_python=True), {}
    if grader["type"] != "multi":
        return await _run_program(calls, request, {"action": "grade", "grader": grader, **names}), {}
    parts = {}
    for name, one in _parts(grader, "grader").items():
        parts[name], _ = await _grade(calls, request, one, names)
    scores = {name: one.reward for name, one in parts.items()}
    asked = {"action": "calculate", "formula": grader["calculate_output"], "scores": scores}
    whole = await _run_program(calls, request, asked)
    errors = {name: text for one in parts.values() for name, text in one.errors.items()}
    return Graded(whole.reward, {**errors, **whole.errors}), parts


async def _run_program(calls: WireCalls, request: Request, inputs: dict[str, Json]) -> Graded:
    return _of(await calls.evaluate(request, Evaluator(_program(), contract=Contract.EVALUATE), Row(inputs)))


@cache
def _program() -> str:
    return Path(__file__).with_name("program.py").read_text("utf-8")


def _evaluator(grader: dict[str, Any]) -> Evaluator:
    code = grader["source"]
    named = {
        part.strip().partition(".")[0].partition(" ")[0] for line in _IMPORT.findall(code) for part in line.split(",")
    }
    packages = tuple(pin for module, pin in _PINS.items() if module in named)
    evaluator = Evaluator(code, contract=Contract("openai-grader"), packages=packages)
    return replace(evaluator, limits=Limits(memory_mb=_IMAGE_MB)) if packages else evaluator


def _of(found: EvaluationResult | EvaluationError, *, of_python: bool = False) -> Graded:
    error = found if isinstance(found, EvaluationError) else found.error
    if error is not None:
        name = "python_grader_server_error" if error.code in HOST_FAULTS else "python_grader_runtime_error"
        return Graded(0.0, {name if of_python else "other_error": f"{described(error)}"})
    value = found.value if isinstance(found, EvaluationResult) else None
    if isinstance(value, dict) and not of_python and value.get("error"):
        return Graded(0.0, {str(value["error"]): str(value.get("details", ""))})
    score = found.score if isinstance(found, EvaluationResult) else None
    return Graded(0.0 if score is None else float(score), {})


def _told(grader: dict[str, Any], found: Graded, parts: dict[str, Graded], *, seconds: float) -> dict[str, Json]:
    errors: dict[str, Json] = {name: name in found.errors for name in _ERRORS}
    if (text := found.errors.get("python_grader_runtime_error")) is not None:
        errors["python_grader_runtime_error_details"] = text
    if (text := found.errors.get("python_grader_server_error")) is not None:
        errors["python_grader_server_error_type"] = text
    scores = {name: one.reward for name, one in parts.items()}
    metadata = {
        "name": grader["name"],
        "type": grader["type"],
        "errors": errors,
        "execution_time": round(seconds, 6),
        "scores": scores or {grader["name"]: found.reward},
        "token_usage": None,
        "sampled_model_name": None,
    }
    return {
        "reward": found.reward,
        "sub_rewards": scores,
        "metadata": metadata,
        "model_grader_token_usage_per_model": {},
    }


async def _require_valid(calls: WireCalls, request: Request, grader: dict[str, Any], path: str) -> None:
    """Check that a grader's code loads, or that its formula and the graders inside it are valid.

    Raises:
      InvalidRequest: the code does not load, or the formula cannot be computed.
    """
    if grader["type"] == "python":
        report = await calls.check(request, _evaluator(grader))
        if not report.ok:
            problem = report.problems[0]
            raise _invalid(f"{path}.source", described(problem))
    if grader["type"] == "multi":
        parts = _parts(grader, path)
        for name, one in parts.items():
            await _require_valid(calls, request, one, f"{path}.graders.{name}")
        asked = {"action": "calculate", "formula": grader["calculate_output"], "scores": dict.fromkeys(parts, 0.5)}
        for text in (await _run_program(calls, request, asked)).errors.values():
            raise _invalid(f"{path}.calculate_output", text)


def _invalid(param: str, message: str) -> InvalidRequest:
    return InvalidRequest(f"{param} {message}", problems=(Problem(param, message),))


def refuse(error: HostError, _path: str) -> Response:
    """Return the response for an error of the host, in OpenAI's format. OpenAI's clients retry after 429 and 5xx."""
    kinds: dict[type[HostError], str] = {
        Unauthorized: "invalid_api_key",
        Refused: "permission_denied",
        NotFound: "unknown_url",
    }
    code = next((name for one, name in kinds.items() if isinstance(error, one)), None)
    status, kind = error.status, "invalid_request_error"
    if isinstance(error, Busy):
        status, kind, code = 429, "requests", "rate_limit_exceeded"
    elif status == InvalidRequest.status:
        status = 400
    elif status >= 500:
        kind = "server_error"
    param = error.problems[0].field if error.problems else None
    told = {"message": error.detail, "type": kind, "param": param, "code": code}
    return json_response({"error": told}, status)


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of OpenAI's client, for `wires check`."""
    source = "def grade(sample, item):\n    return float(sample['output_text'] == item['wanted'])\n"
    python = {"type": "python", "name": "exact", "source": source}
    check = {
        "type": "string_check",
        "name": "same",
        "operation": "eq",
        "input": "{{sample.output_text}}",
        "reference": "{{item.wanted}}",
    }
    multi = {"type": "multi", "name": "both", "graders": {"a": python, "b": check}, "calculate_output": "(a + b) / 2"}
    row = {"model_sample": "Paris", "item": {"wanted": "Paris"}}
    run = f"{_GRADERS}/run"
    return (
        Probe("run, python", "POST", run, {"grader": python, **row}, lambda got: got.json()["reward"] == 1),
        Probe("run, multi", "POST", run, {"grader": multi, **row}, lambda got: got.json()["reward"] == 1),
        Probe("validate", "POST", f"{_GRADERS}/validate", {"grader": python}, lambda got: "grader" in got.json()),
    )


WIRE: Final = Wire(
    name="openai",
    title="grader routes of OpenAI's API, for clients with another base_url",
    variable="OPENAI_BASE_URL={url}/v1",
    clock_s=300.0,
    row_s=120.0,
    body_bytes=8 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
)
