"""Measures how much one core and one gigabyte of memory can do: the processor time of a call and of a row, and the
memory of a warm evaluator.

The figures are the processor time and the memory of a real host and its sandboxes, because other work on the machine
hardly changes these.
"""

import http.client
import json
import time
from contextlib import closing
from typing import Any

from evaluator_host.types.evaluator import Isolation, Language
from tests.benchmarks.figures import CODE, pss_mb
from tests.benchmarks.tenants import processor_s

CALLS, ROWS, EVALUATORS = 400, {Isolation.ROW: 2000, Isolation.BATCH: 20_000}, 8
_ROW = {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}
_BATCH = 1000  # number of rows in one request
_SETTLE_S = 2.0  # seconds within which the host measures the memory of its sandboxes


def spent_ms(port: int, pid: int, language: Language) -> dict[str, float]:
    """Measure the processor time, in ms, of a warm call (`call`), and of a row with isolation `row` and `batch`."""
    evaluator = {"code": CODE[language], "language": language.value}
    found = {"call": _spent_ms(port, pid, "/v1/evaluate", {"evaluator": evaluator, **_ROW}, CALLS)}
    for isolation, rows in ROWS.items():
        body = {"evaluator": evaluator, "rows": [_ROW] * _BATCH, "isolation": isolation.value}
        found[isolation.value] = _spent_ms(port, pid, "/v1/evaluate/batch", body, rows // _BATCH) / _BATCH
    return found


def evaluator_mb(port: int, pid: int, language: Language) -> float:
    """Measure how many MB of memory one more warm evaluator takes, in its sandbox and in the host."""

    def warm(first: int, last: int) -> float:
        for number in range(first, last):
            code = f"{CODE[language]}{'#' if language is Language.PYTHON else '//'} {number}\n"
            body = {"evaluator": {"code": code, "language": language.value}, **_ROW}
            _spent_ms(port, pid, "/v1/evaluate", body, 3)
        time.sleep(_SETTLE_S)
        return pss_mb(pid)

    before = warm(0, 2)
    return (warm(2, 2 + EVALUATORS) - before) / EVALUATORS


def _spent_ms(port: int, pid: int, path: str, body: dict[str, Any], times: int) -> float:
    content = json.dumps(body)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        began = 0.0
        for number in range(times + 1):  # the first call is not warm
            if number == 1:
                began = processor_s(pid)
            connection.request("POST", path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text[:500]
    return (processor_s(pid) - began) * 1000 / times
