"""An evaluator that returns its input gives back any JSON value unchanged, or a warning or error names the paths that
differ.

Each value goes through a request, a row, an evaluator, a result, the database and a download. It is sent as a value,
and also as a string that the evaluator parses, since a program can make values that no request can contain.
"""

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.databases import ENGINES, Databases
from tests.fuzz.bounds import LEAVES, LONG, TEXT, bounded, nested
from tests.server import Server, new_home

PYTHON = """
import json
def evaluate(inputs, outputs, trace):
    return {"score": 1, "given": [inputs["value"]], "outputs": [outputs], "made": [json.loads(inputs["text"])]}
"""
JAVASCRIPT = """
// V8's JSON.parse takes an escaped key for an earlier one with a backslash in its place (nodejs/node, 63785)
const made = (text) => new Function(`return (${text.replaceAll('"__proto__":', '["__proto__"]:')})`)();
export const evaluate = (inputs, outputs, trace) =>
    ({ score: 1, given: [inputs.value], outputs: [outputs], made: [made(inputs.text)] });
"""
EVALUATORS: Final[dict[str, dict[str, Any]]] = {
    "python": {"code": PYTHON},
    "javascript": {"code": JAVASCRIPT, "language": "javascript"},
    "typescript": {"code": JAVASCRIPT, "language": "typescript"},
    "exact": {"code": JAVASCRIPT, "language": "javascript", "settings": {"integers": "bigint"}},
}
ESCAPED = ("\\", '"', "\n", "\\n", "a\\", 'a"', "\\\\")
NAMES = (
    "__proto__",
    "constructor",
    "toJSON",
    "then",
    "length",
    "",
    "0",
    "a.b",
    "\u0000",
    "k" * 5000,
    "score",
    *ESCAPED,
)
WHOLE = TEXT.filter(lambda text: not any("\ud800" <= one <= "\udfff" for one in text))
NUMBERS = LONG | st.floats(allow_nan=False, allow_infinity=False) | st.integers(2**53 - 2, 2**53 + 2)
ODD: Final[list[Any]] = [
    None, True, 0, -0.0, 5e-324, 1.7976931348623157e308, 2**53, -(2**53) - 1, 2**60, 2**64, 10**21, 10**22, 10**300,
    1e20, 2.0**60, 1e21, 1e22, "", "\u0000", "a\u0000b", "\u2028\u2029", "\U0001f600", "NaN", "1e400", "\ufeff", "x" * 5000, [], {},
    {"__proto__": {"a": 1}}, {"__proto__": None, "constructor": {"prototype": 1}}, {"toJSON": "x", "then": 1, "length": 3},
    {"": {"": 1}}, {"0": 1, "1": 2, "a": 0}, {"b": 1, "a": 2}, {"\u0000": "\u0000"}, {"k" * 5000: 2**53 + 1}, {"k" * 100_000: 1},
    nested(40, 2**53 + 1), nested(40, -0.0, key="a"), nested(61, 1), {"a.b": {"c[0]": 2**53 + 1}}, [2**53 + 1] * 40,
]  # fmt: skip
MADE: Final = (
    *("1e400", "-1e400", "[1e999, 1]", '"\\ud800"', '{"\\ud800": 1}', '{"a": ["\\udc00\\ud800"]}', '{"a": 1, "a": 2}'),
    *("-0", "1E5", "1" * 400, "[" * 70 + "]" * 70, '{"\\ud800": 1, "\\udbff": 2}', '["\\ud83d\\ude00"]', "NaN"),
    *(json.dumps(["\ud800"] * 40), json.dumps([10**400, 1])),
)
"""JSON of numbers and strings that no request can contain."""

JSON: Final = {"Content-Type": "application/json"}

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def values(leaves: Any, texts: Any) -> Any:
    names = texts | st.sampled_from(NAMES)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=5), max_leaves=12
    )


GIVEN = values(st.none() | st.booleans() | NUMBERS | WHOLE, WHOLE)
RETURNED = values(LEAVES.filter(lambda one: one == one) | NUMBERS, TEXT)


def drawn(count: int) -> list[dict[str, Any]]:
    """Return rows with the odd values of this file, and `count` rows with random values."""
    rows = [_row(value, json.dumps(value)) for value in ODD] + [_row(None, text) for text in MADE]

    @bounded(count, shrink=False)
    @given(GIVEN, RETURNED)
    def draw(value: Any, made: Any) -> None:
        rows.append(_row(value, json.dumps(made).replace("Infinity", "1e999")))

    draw()
    return rows


def _row(value: Any, text: str) -> dict[str, Any]:
    return {"inputs": {"value": value, "text": text}, "outputs": value}


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two JSON values differ; an integer and a float with the same value are equal."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key, value in one.items():
            step = f".{key}" if key.isidentifier() else f"[{json.dumps(key, ensure_ascii=False)}]"
            yield from differences(value, other[key], f"{path}{step}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (value, again) in enumerate(zip(one, other, strict=True)):
            yield from differences(value, again, f"{path}[{at}]")
    elif not _same(one, other):
        yield path


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or not isinstance(one, int | float):
        return type(one) is type(other) and one == other
    signs = (math.copysign(1, number) for number in (one, other))
    return type(other) in (int, float) and one == other and (not isinstance(one, float) or next(signs) == next(signs))


def unsaid(row: dict[str, Any], result: dict[str, Any], evaluator: str) -> list[str]:
    """Return the paths at which a result differs from its row although no warning or error names the path."""
    if result["error"] is not None:
        message = result["error"]["message"]
        return [] if "$.made[0]" in message or "$.given[0]" in message else [message]
    # in JavaScript all numbers are floats, because the evaluator itself called JSON.parse
    numbers = {} if evaluator == "python" else {"parse_int": float}
    sent = (row["inputs"]["value"], row["outputs"], json.loads(row["inputs"]["text"], **numbers))
    came = (result["value"][name][0] for name in ("given", "outputs", "made"))
    pairs = zip(("$.inputs.value", "$.outputs", "$.made[0]"), sent, came, strict=True)
    found = [path for name, one, other in pairs for path in differences(one, other, name)]
    said = [one["message"] for one in result["warnings"] if one["code"] in ("coerced", "rounded_integer")]
    named = [path for path in found if any(_cut(path) in message for message in said)]
    more = sum(int(count) for message in said for count in re.findall(r"\b(\d+) more\b", message))
    rest = [path for path in found if path not in named]
    return rest if len(rest) > more else []


def _cut(path: str) -> str:
    return path[:100]


@pytest.mark.long("this sends hundreds of values; test_exact_values.py tests large integers")
@pytest.mark.parametrize("engine", ENGINES)
def test_any_value_comes_back_or_is_named(engine: str, databases: Databases, tmp_path: Path) -> None:
    rows = drawn(500)
    environment = {"EVALUATOR_HOST_DATABASE_URL": databases.make(engine)}
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=environment) as server:
        missed = {f"{name}, {how}": found for name, how, found in came(server.client, rows)}
    assert {name: found[:5] for name, found in missed.items() if found} == {}


def came(client: httpx.Client, rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield an evaluator, a way to read results, and the rows with differences that no warning or error names."""
    for name, evaluator in EVALUATORS.items():
        results = [one for some in (rows[:10], rows[10:]) for one in _batch(client, evaluator, some)]
        yield name, "batch", missed(rows, results, name)
    _ok(client.post("/v1/datasets?name=any", content=_lines(rows), headers={"Content-Type": "application/x-ndjson"}))
    for name, evaluator in EVALUATORS.items():
        _ok(client.post("/v1/evaluators", content=json.dumps({"name": name, **evaluator}), headers=JSON))
    job = _ok(
        client.post("/v1/jobs", json={"evaluators": [*EVALUATORS], "dataset": "any", "config": {"isolation": "batch"}})
    )
    path = f"/v1/jobs/{job['id']}"
    while _ok(client.get(path))["status"] in ("queued", "running"):
        time.sleep(0.1)
    text = client.get(f"{path}/rows.jsonl").text.removesuffix("\n")
    for how, found in (("download", [json.loads(line) for line in text.split("\n")]), ("API", [*_pages(client, path)])):
        assert len(found) == len(rows) * len(EVALUATORS)
        for name in EVALUATORS:
            own = [one for one in found if one["evaluator"].startswith(f"{name}@")]
            yield name, how, missed(rows, [one["result"] for one in own], name)
            yield (
                name,
                f"rows of the {how}",
                [one for one, row in zip(own, rows, strict=True) if [*differences(row, one["row"])]],
            )


def missed(rows: list[dict[str, Any]], results: list[dict[str, Any]], name: str) -> list[Any]:
    pairs = ((row, unsaid(row, result, name), result) for row, result in zip(rows, results, strict=True))
    return [(paths[:3], row, result["value"], result["warnings"]) for row, paths, result in pairs if paths]


def _batch(client: httpx.Client, evaluator: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    body = json.dumps({"evaluator": evaluator, "rows": rows, "isolation": "batch"})
    results: list[dict[str, Any]] = _ok(client.post("/v1/evaluate/batch", content=body, headers=JSON))["results"]
    return results


def _pages(client: httpx.Client, path: str) -> Iterator[dict[str, Any]]:
    cursor: dict[str, str] = {}
    while True:
        page = _ok(client.get(f"{path}/rows", params={"limit": 1000, **cursor}))
        yield from page["rows"]
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _ok(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text[:2000]
    return json.loads(answer.text)
