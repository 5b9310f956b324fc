"""Runs programs with the real package of a platform. Usage: platform_real.py PLATFORM CASES FOUND.

CASES is JSON: `{id: {"code", "variables"}}`. FOUND gets `{id: {"native": […]}}`, or `{"error": text}` where the package
raises or refuses the value.
"""

import json
import os
import sys
import uuid
import warnings
from datetime import UTC, datetime

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "OPIK_TRACK_DISABLE": "true", "LANGSMITH_TRACING": "false"}
warnings.simplefilter("ignore")


class Refused(Exception):
    """The platform refuses a returned value."""


def run(code):
    """Return the globals of a program that has run as a module."""
    name = "evaluator"
    module = type(sys)(name)
    sys.modules[name] = module
    exec(compile(code, "evaluator.py", "exec"), module.__dict__)
    return module.__dict__


def own(namespace, wanted):
    """Return the objects that the program itself defines and for which `wanted` is true, in the order of their
    definition.
    """
    return [one for one in namespace.values() if getattr(one, "__module__", None) == "evaluator" and wanted(one)]


def langsmith(namespace, given):
    from langsmith.evaluation.evaluator import run_evaluator
    from langsmith.schemas import Example, Run

    now, id_ = datetime.now(UTC), uuid.uuid4()
    function = own(namespace, lambda one: callable(one) and not isinstance(one, type))[-1]
    made, example = given.get("run") or {}, given.get("example")
    known = {name: one for name, one in made.items() if name not in ("trace",)}
    real_run = Run(**{"id": id_, "name": "run", "start_time": now, "run_type": "chain", "trace_id": id_, "inputs": {}, **known})
    if example is not None:
        example = Example(**{"id": uuid.uuid4(), "created_at": now, "dataset_id": uuid.uuid4(), **example})
    result = run_evaluator(function).evaluate_run(real_run, example)
    found = result["results"] if isinstance(result, dict) else [result]
    return [one.model_dump() if hasattr(one, "model_dump") else one.dict() for one in found]


def braintrust(namespace, given):
    from braintrust import Eval

    row = {name: given.get(name) for name in ("input", "expected", "metadata")}
    done = Eval("x", data=[row], task=lambda input: given["output"], scores=[namespace["handler"]], no_send_logs=True)
    [result] = done.results
    errors = (result.metadata or {}).get("scorer_errors")
    if result.error is not None or errors:
        raise Refused(str(errors or result.error))
    return [{"name": name, "score": score} for name, score in result.scores.items()]


def opik(namespace, given):
    from opik.evaluation.metrics import BaseMetric
    from opik.evaluation.metrics.score_result import ScoreResult

    kinds = own(namespace, lambda one: isinstance(one, type) and issubclass(one, BaseMetric))
    metric = min(kinds, key=lambda one: one.__name__)()
    returned = metric.score(**given["data"])
    found = [one for one in (returned if isinstance(returned, list) else [returned]) if isinstance(one, ScoreResult)]
    if not found or all(one.value is None or one.scoring_failed for one in found):
        raise Refused("no ScoreResult with a value")
    return [vars(one) for one in found]


def phoenix(namespace, given):
    evaluator = next(one for one in reversed(namespace.values()) if hasattr(one, "evaluate") and hasattr(one, "kind"))
    return [{name: getattr(one, name) for name in ("name", "score", "label", "explanation")} for one in evaluator.evaluate(given)]


def deepeval(namespace, given):
    import asyncio

    from deepeval.evaluate.utils import create_metric_data
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase, ToolCall

    [kind] = own(namespace, lambda one: isinstance(one, type) and issubclass(one, BaseMetric))
    metric, fields = kind(), dict(given["test_case"])
    for name in ("tools_called", "expected_tools"):
        if name in fields:
            fields[name] = [ToolCall(**one) for one in fields[name]]
    case = LLMTestCase(**fields)
    asyncio.run(metric.a_measure(case)) if getattr(metric, "async_mode", True) else metric.measure(case)
    if metric.error is not None:
        raise Refused(metric.error)
    stored = create_metric_data(metric)
    return [{"score": stored.score, "success": stored.success, "reason": stored.reason}]


def mlflow(namespace, given):
    from mlflow.genai.evaluation.utils import standardize_scorer_value
    from mlflow.genai.scorers import Scorer

    made = [one for one in namespace.values() if isinstance(one, Scorer)]
    kinds = own(namespace, lambda one: isinstance(one, type) and issubclass(one, Scorer))
    scorer = made[0] if made else kinds[0]()
    value = scorer.run(**{name: given.get(name) for name in ("inputs", "outputs", "expectations")})
    found = standardize_scorer_value(scorer.name, value)
    if found and all(one.error is not None for one in found):
        raise Refused("only feedback with errors")
    return [{name: getattr(one, name) for name in ("name", "value", "rationale")} for one in found]


def weave(namespace, given):
    import asyncio

    from weave.flow.scorer import Scorer, apply_scorer_async, auto_summarize
    from weave.trace.op import is_op

    kinds = own(namespace, lambda one: isinstance(one, type) and issubclass(one, Scorer))
    scorer = kinds[0]() if kinds else [one for one in namespace.values() if is_op(one)][-1]
    result = asyncio.run(apply_scorer_async(scorer, given["example"], given["output"])).result
    return [{"result": result, "summary": auto_summarize([result])}]


def ragas(namespace, given):
    import inspect

    made = (one for one in namespace.values() if not isinstance(one, type) and hasattr(one, "allowed_values"))
    metric, function = next(
        (one, function) for one in made if (function := getattr(one, "__wrapped__", None) or getattr(one, "_func", None))
    )
    taken = inspect.signature(function).parameters
    result = metric.score(**{name: one for name, one in given.items() if name in taken})
    if result.value is None:
        raise Refused(result.reason)
    return [{"name": metric.name, "value": result.value, "reason": result.reason}]


def main(platform, cases, found):
    call = globals()[platform]
    made = {}
    with open(cases) as file:
        given = json.load(file)
    for name, case in given.items():
        try:
            made[name] = {"native": call(run(case["code"]), case["variables"])}
        except Exception as error:  # noqa: BLE001 - whatever the program or the package raises
            made[name] = {"error": f"{type(error).__name__}: {error}"}
    with open(found, "w") as file:
        json.dump(made, file, default=lambda one: one.model_dump() if hasattr(one, "model_dump") else str(one))
    sys.stdout.flush()
    os._exit(0)  # this ends the process at once, because threads of some packages are slow to end


main(*sys.argv[1:])
