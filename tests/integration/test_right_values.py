"""Each evaluator in `right_values.py` gets the score that its author meant, or the result says why not."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.right_values import ANY, CASES, Case
from tests.server import Server

pytestmark = pytest.mark.engine
KINDS = sorted({one.kind for one in CASES})


def wrong(case: Case, server: Server) -> list[str]:
    """Describe the differences between the host's result and the right result."""
    evaluator = {"code": case.code, "language": case.language, **case.evaluator}
    if case.batch:
        body: dict[str, Any] = {"evaluator": evaluator, "rows": [{"outputs": "a"}] * 3}
        scores = [one["score"] for one in server.client.post("/v1/evaluate/batch", json=body).json()["results"]]
        return [] if len(set(scores)) == 3 and None not in scores else [f"scores {scores}"]
    answer = server.client.post("/v1/evaluate", json={"evaluator": evaluator, **case.row})
    if answer.status_code != 200:
        return [f"{answer.status_code} {answer.text}"]
    result = answer.json()
    notes, error = result["warnings"], result["error"] or {}
    said = "\n".join(
        map(str, [error.get("message"), error.get("hint"), *(f"{one['message']}; {one['remedy']}" for one in notes)])
    )
    asked = {name: getattr(case, name) for name in ("score", "passed", "reason") if getattr(case, name) is not ANY}
    faults = [
        *(f"{name} {result[name]!r}, not {value!r}" for name, value in asked.items() if result[name] != value),
        *([f"status {result['status']}"] if case.status and case.status != result["status"] else []),
        *([f"no warning {case.warns}"] if case.warns and case.warns not in [one["code"] for one in notes] else []),
        *([f"does not say {case.said!r}"] if case.said not in said else []),
        *([f"says {case.unsaid!r}"] if case.unsaid and case.unsaid in said else []),
    ]
    return [case.code, *faults, f"{result['status']} {result['score']}; {said}"] if faults else []


@pytest.mark.sampled(30)
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_their_authors(kind: str, server: Server) -> None:
    cases = [one for one in CASES if one.kind == kind]
    assert len(cases) >= 4
    with ThreadPoolExecutor(3) as threads:
        found = [one for one in threads.map(lambda case: wrong(case, server), cases) if one]
    assert not found, "\n\n".join(map("\n".join, found))
