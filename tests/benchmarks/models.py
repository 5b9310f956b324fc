"""Measures how much more a row's request to a granted model costs than the same request sent directly to the provider
(on loopback).

Blocks of rows and blocks of direct requests alternate. Two figures are compared: the median time of a request, and its
processor time. For a row's request, this is the time of the host and its sandboxes; for a direct request, it is the
client's time.
"""

import http.client
import json
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, cast

from tests.benchmarks.tenants import processor_s

BLOCK: Final = 40
BLOCKS: Final = 12
ASKS: Final = """
import http.client, json, os, time
from urllib.parse import urlsplit

def ask_all(base_url, key, count):
    url, took = urlsplit(base_url), []
    body = json.dumps({"model": "judge", "messages": [{"role": "user", "content": "Is this polite? Answer 1 or 0."}]})
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
    for _ in range(count):
        begun = time.perf_counter()
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        connection.request("POST", url.path + "/chat/completions", body, headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        json.loads(response.read())
        connection.close()
        took.append((time.perf_counter() - begun) * 1000)
    return took

def evaluate(inputs, outputs, trace):
    took = ask_all(os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"], inputs["requests"])
    return {"score": 1.0, "took": took}
"""


def overhead_ms(port: int, pid: int, url: str, key: str) -> dict[str, tuple[float, float]]:
    """Measure, in milliseconds, a request through the gateway and a direct request: `time` (medians) and `processor`.

    Args:
      port: Port of the host, which has the model `judge`.
      pid: Process id of the host.
      url: Base URL of the provider.
      key: The provider's key.
    """
    names: dict[str, Any] = {}
    exec(ASKS, names)
    ask_all = cast("Callable[[str, str, int], list[float]]", names["ask_all"])
    through, direct = list[float](), list[float]()
    through_s = direct_s = 0.0
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        _row_ms(connection, BLOCK)  # the first block is not counted, because its calls are not warm
        for _ in range(BLOCKS):
            begun_s = processor_s(pid)
            _row_ms(connection, 0)
            between_s = processor_s(pid)
            through += _row_ms(connection, BLOCK)
            through_s += processor_s(pid) - between_s - (between_s - begun_s)
            begun = time.thread_time()
            direct += ask_all(url, key, BLOCK)
            direct_s += time.thread_time() - begun
    each_ms = 1000 / (BLOCK * BLOCKS)
    return {
        "time": (statistics.median(through), statistics.median(direct)),
        "processor": (through_s * each_ms, direct_s * each_ms),
    }


def _row_ms(connection: http.client.HTTPConnection, requests: int) -> list[float]:
    """Score one row that makes this many requests; return how many milliseconds each took."""
    evaluator = {"code": ASKS, "models": ["judge"]}
    body = json.dumps({"evaluator": evaluator, "inputs": {"requests": requests}, "outputs": ""})
    connection.request("POST", "/v1/evaluate", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    assert answer["status"] == "scored", answer
    return cast("list[float]", answer["value"]["took"])
