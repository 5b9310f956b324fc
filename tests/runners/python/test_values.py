"""The runner sends each returned value in the form that the protocol prescribes, even if the value's own methods return
false information.
"""

import collections
import dataclasses
import datetime as dt
import enum
import json
import math
import pathlib
import re
import uuid
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from evaluator_runner.encode import TooLarge, encode_result


class Colour(enum.Enum):
    RED = 0.5


class Level(enum.IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    score: float
    reason: str


@dataclasses.dataclass
class Scored:
    score: float
    reason: str = "ok"


class Model:
    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"score": 0.25, "mode": mode}


class LyingStr(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "lie"

    def encode(self, *_: Any) -> bytes:
        return b"lie"

    def __repr__(self) -> str:
        return "lie"


class LyingFloat(float):
    def __float__(self) -> float:
        return 99.0

    def __repr__(self) -> str:
        return "99.0"


class LyingInt(int):
    def __int__(self) -> int:
        return 99

    def __repr__(self) -> str:
        return "99"


class LyingDict(dict[str, Any]):
    def items(self) -> Any:
        return [("score", 99)]

    def __iter__(self) -> Any:
        return iter(["score"])

    def __getitem__(self, key: Any) -> Any:
        return 99


class LyingList(list[Any]):
    def __iter__(self) -> Any:
        return iter([99])

    def __len__(self) -> int:
        return 0


class Shape(enum.Enum):
    SQUARE = (1, 2)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class PretendsToBeDict:
    __class__ = dict  # type: ignore[assignment]


def iter_nothing() -> Iterator[int]:
    yield from ()


def result(value: Any) -> dict[str, Any]:
    return dict(json.loads(encode_result(value, limit=1 << 20)))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0.7, "number"),
        (-0.0, "number"),
        (1e-300, "number"),
        (3, "number"),
        (2**63 + 1, "number"),
        (10**308, "number"),
        (True, "bool"),
        (False, "bool"),
        (None, "null"),
        ("text", "string"),
        ("é\n\x00\U0001f600", "string"),
        ({"score": 1, "m": {"a": [1, None, "x"]}}, "object"),
        ({}, "object"),
        ([], "array"),
        ([1, [2]], "array"),
    ],
)
def test_json_values_stay_what_they_are(value: Any, kind: str) -> None:
    assert result(value) == {"kind": kind, "value": value, "nonfinite": [], "unsupported": None, "notes": []}


@pytest.mark.parametrize(
    ("value", "kind", "plain", "noted"),
    [
        ((1, 2), "array", [1, 2], False),
        ({"a": (1, 2)}, "object", {"a": [1, 2]}, True),
        (Decimal("0.5"), "number", 0.5, True),
        (Fraction(1, 4), "number", 0.25, True),
        (Colour.RED, "number", 0.5, True),
        (Level.HIGH, "number", 3, True),
        (Pair(1.0, "r"), "object", {"score": 1.0, "reason": "r"}, True),
        (Scored(0.5), "object", {"score": 0.5, "reason": "ok"}, True),
        (Model(), "object", {"score": 0.25, "mode": "json"}, True),
        ({1: "a", None: "b", False: "c", 2.5: "d"}, "object", {"1": "a", "null": "b", "false": "c", "2.5": "d"}, True),
        ({"a": 1, 1: 2, "1": 3}, "object", {"a": 1, "1": 3}, True),
        (collections.OrderedDict(a=1), "object", {"a": 1}, False),
        (collections.Counter("aab"), "object", {"a": 2, "b": 1}, False),
        ("\ud800x", "string", "\ufffdx", True),
        ("\ud83d\ude00", "string", "\U0001f600", True),
        ({"\udfff": 1}, "object", {"\ufffd": 1}, True),
        (LyingStr("truth"), "string", "truth", False),
        (LyingFloat(0.5), "number", 0.5, False),
        (LyingInt(7), "number", 7, False),
        (LyingDict(score=0.5), "object", {"score": 0.5}, False),
        (LyingList([1, 2]), "array", [1, 2], False),
    ],
)
def test_coercions(value: Any, kind: str, plain: Any, noted: bool) -> None:
    found = result(value)
    assert (found["kind"], found["value"]) == (kind, plain)
    assert [note["code"] for note in found["notes"]][:1] == (["coerced"] if noted else [])


@pytest.mark.parametrize(
    ("value", "path", "kind"),
    [
        ({1, 2}, "$", "set"),
        (b"x", "$", "bytes"),
        (iter_nothing(), "$", "generator"),
        (len, "$", "builtin_function_or_method"),
        (object(), "$", "object"),
        (1j, "$", "complex"),
        ({"m": {"a b": [0, {len}]}}, '$.m["a b"][1][0]', "builtin_function_or_method"),
        (dt.date(2026, 1, 2), "$", "datetime.date"),
        (ValueError("no"), "$", "ValueError"),
        ({"raw": b"\xff"}, "$.raw", "bytes"),
        ({"found": re.search("a", "a")}, "$.found", "re.Match"),
        ({"why": Mute()}, "$.why", "tests.runners.python.test_values.Mute"),
        (PretendsToBeDict(), "$", "tests.runners.python.test_values.PretendsToBeDict"),
    ],
)
def test_unsupported_values_are_named(value: Any, path: str, kind: str) -> None:
    found = result(value)
    assert found["unsupported"] == {"path": path, "type": kind}
    assert found["kind"] == ("unsupported" if path == "$" else "object")


@pytest.mark.parametrize(
    ("part", "plain", "taken_as"),
    [
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02T03:00:00+00:00", "text"),
        (dt.date(2026, 1, 2), "2026-01-02", "text"),
        (dt.time(3, 4), "03:04:00", "text"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001", "text"),
        (pathlib.PurePosixPath("a/b"), "a/b", "text"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero", "text"),
        (
            json.JSONDecodeError("no value", "", 0),
            "json.decoder.JSONDecodeError: no value: line 1 column 1 (char 0)",
            "text",
        ),
        (AssertionError(), "AssertionError", "text"),
        (ValueError("\ud800"), "ValueError: \ufffd", "text"),
        ({"b", "a"}, ["a", "b"], "a sorted list"),
        (frozenset((3, 1.5)), [1.5, 3], "a sorted list"),
        ({(2, "b"), (1, "a")}, [[1, "a"], [2, "b"]], "a sorted list"),
        ({Model()}, [{"score": 0.25, "mode": "json"}], "a sorted list"),
        ({"é".encode(): 1}.keys(), ["é"], "a list"),
        (collections.deque((1, 2)), [1, 2], "a list"),
        ("naïve".encode(), "naïve", "text"),
        (bytearray(b"x"), "x", "text"),
        (Shape.SQUARE, [1, 2], "its value"),
    ],
)
def test_parts_with_one_obvious_form_take_it(part: Any, plain: Any, taken_as: str) -> None:
    found = result({"score": 1, "part": [part]})
    assert (found["unsupported"], found.get("value")) == (None, {"score": 1, "part": [plain]})
    assert found["notes"][0]["message"].endswith(f" at $.part[0] was taken as {taken_as}")


def test_a_set_that_cannot_be_sorted_is_a_list() -> None:
    assert sorted(result({"part": {1, "a"}})["value"]["part"], key=str) == [1, "a"]


def test_a_match_is_true() -> None:
    found = result(re.search("a", "abc"))
    assert (found["kind"], found["value"]) == ("bool", True)
    assert "the returned re.Match was taken as True; wrap it in bool(…)" in found["notes"][0]["message"]


def test_cycles_and_depth() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = [cycle]
    assert result(cycle)["unsupported"] == {"path": "$.self[0]", "type": "cyclic value"}
    deep: Any = 1
    for _ in range(64):
        deep = [deep]
    assert result(deep)["unsupported"] is None
    assert result([deep])["unsupported"]["type"] == "value deeper than 64 levels"
    for _ in range(100_000):
        deep = [deep]
    assert result(deep)["unsupported"]["type"] == "value deeper than 64 levels"
    shared = [1]
    assert result([shared, shared])["value"] == [[1], [1]]


def test_nonfinite_numbers_are_null_with_their_paths() -> None:
    found = result({"a": math.nan, "b": [math.inf, 10**400], "c": Decimal("NaN"), "d": Decimal("1e999")})
    assert found["value"] == {"a": None, "b": [None, None], "c": None, "d": None}
    assert found["nonfinite"] == ["$.a", "$.b[0]", "$.b[1]", "$.c", "$.d"]
    assert result(-math.inf)["kind"] == "number"
    assert len(result([math.nan] * 20)["nonfinite"]) == 8


def test_numpy_scalars_by_type_alone() -> None:
    numpy = type("generic", (), {"__module__": "numpy", "ndim": 0, "item": lambda self: 0.5})
    scalar = type("float32", (numpy,), {"__module__": "numpy"})
    found = result({"score": scalar()})
    assert found["value"] == {"score": 0.5}
    assert found["notes"] == []


def test_notes_are_bounded() -> None:
    assert len(result([Decimal(1)] * 100)["notes"]) == 16


def test_too_large() -> None:
    with pytest.raises(TooLarge):
        encode_result("x" * 2000, limit=1000)
    with pytest.raises(TooLarge):
        encode_result(list(range(1000)), limit=1000)
