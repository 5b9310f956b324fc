"""Cases with the documented evaluators of traces, for every format of traces."""

import copy
import json
from pathlib import Path
from typing import Any

from tests.contract.cases.case import Case, javascript, python, scored, typescript

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"

LATENCY_PY = """
def evaluate(inputs, outputs, trace):
    if not trace or not trace.get("spans"):
        return 0.0
    root = list(trace["spans"].values())[0]
    metrics = root.get("attributes", {}).get("ag", {}).get("metrics", {})
    seconds = metrics.get("unit", {}).get("duration", {}).get("total", 0)
    return 0.0 if seconds > 5.0 else 1.0
"""
TOKENS_PY = """
def evaluate(inputs, outputs, trace):
    if not trace or not trace.get("spans"):
        return 0.5
    root = list(trace["spans"].values())[0]
    unit = root.get("attributes", {}).get("ag", {}).get("metrics", {}).get("unit", {})
    used, budget = unit.get("tokens", {}).get("total", 0), 500
    if used <= budget:
        return 1.0
    return 0.5 if used <= budget * 1.5 else 0.0
"""
LATENCY_JS = """
function evaluate(inputs, outputs, trace) {
  const root = Object.values(trace?.spans ?? {})[0];
  if (!root) return 0;
  return (root.attributes?.ag?.metrics?.unit?.duration?.total ?? 0) > 5 ? 0 : 1;
}
"""
PATHS_PY = """
def evaluate(inputs, outputs, trace):
    root = list(trace["spans"].values())[0]
    ag = root["attributes"]["ag"]
    return {
        "score": float(ag["data"]["inputs"]["city"] in ag["data"]["outputs"]),
        "seconds": ag["metrics"]["unit"]["duration"]["total"],
        "tokens": ag["metrics"]["unit"]["tokens"]["total"],
        "cost": ag["metrics"]["unit"]["costs"]["total"],
        "children": len(root["children"]),
        "reason": root["name"],
    }
"""
# formats of traces, each with the number of children that its root has
SHAPES = {
    "documented": 1,
    "agenta_stored": 3,
    "flat_list": 3,
    "otlp": 2,
}


def load(shape: str) -> dict[str, Any]:
    return dict(json.loads((TRACES / f"{shape}.json").read_text()))


def slowed(shape: str) -> dict[str, Any]:
    """Return the trace in this format, but with a root span that took seven seconds."""
    trace = copy.deepcopy(load(shape))
    if shape == "otlp":
        root = next(s for s in trace["resourceSpans"][0]["scopeSpans"][0]["spans"] if not s["parentSpanId"])
        root["endTimeUnixNano"] = str(int(root["startTimeUnixNano"]) + 7_000_000_000)
        return trace
    spans = trace["spans"] if isinstance(trace["spans"], list) else list(trace["spans"].values())
    root = next(span for span in spans if "parent_id" not in span)
    metrics = root["attributes"]["ag"]["metrics"]
    if shape == "documented":
        metrics["unit"]["duration"]["total"] = 7.0
    else:
        metrics["duration"]["cumulative"] = 7000.0
    return trace


def with_tokens(total: int) -> dict[str, Any]:
    trace = copy.deepcopy(load("documented"))
    next(iter(trace["spans"].values()))["attributes"]["ag"]["metrics"]["unit"]["tokens"]["total"] = total
    return trace


def shape_cases(shape: str, children: int) -> list[Case]:
    warnings = () if shape == "documented" else ("trace_converted",)
    metrics = {"score": 1.0, "seconds": 1.75, "tokens": 40, "cost": 0.0004, "children": children}
    paths = scored(1.0, reason="travel_bot", metrics=metrics, warnings=warnings)
    return [
        python(f"trace-{shape}-paths", PATHS_PY, paths, trace=load(shape)),
        python(f"trace-{shape}-quick", LATENCY_PY, scored(1.0, warnings=warnings), trace=load(shape)),
        python(f"trace-{shape}-slow", LATENCY_PY, scored(0.0, warnings=warnings), trace=slowed(shape)),
        javascript(f"trace-{shape}-slow", LATENCY_JS, scored(0, warnings=warnings), trace=slowed(shape)),
        python(f"trace-{shape}-tokens", TOKENS_PY, scored(1.0, warnings=warnings), trace=load(shape)),
    ]


CASES = [
    *(case for shape, children in SHAPES.items() for case in shape_cases(shape, children)),
    python("trace-tokens-over", TOKENS_PY, scored(0.5), trace=with_tokens(600)),
    python("trace-tokens-far-over", TOKENS_PY, scored(0.0), trace=with_tokens(900)),
    python("trace-none-latency", LATENCY_PY, scored(0.0)),
    python("trace-none-tokens", TOKENS_PY, scored(0.5)),
    python("trace-without-spans", LATENCY_PY, scored(0.0), trace={"spans": {}}),
    javascript("trace-none-latency", LATENCY_JS, scored(0)),
    typescript("trace-quick", LATENCY_JS.replace("trace)", "trace: any)"), scored(1), trace=load("documented")),
]
