"""`policy: restricted` accepts ordinary evaluators; for other code, the error names the place that breaks the policy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body
from tests.runners.python.conftest import COMMAND

ORDINARY = """
from __future__ import annotations
from typing import Dict, Any
from dataclasses import dataclass
import collections, json, math, re, statistics

LIMIT: int = 1

@dataclass
class Part:
    a: float
    b: int = 2

    def total(self) -> float:
        return self.a + self.b

class Counted(Part):
    def __init__(self, value):
        super().__init__(value)
        self.seen = 0
        self.seen += 1

def evaluate(inputs: Dict[str, Any], outputs: Any, trace) -> Dict[str, Any]:
    counts = collections.defaultdict(int)
    counts["a"] += 1
    a, (b, c) = 1, (2, 3)
    for key, (value, _) in {"k": (1, 2)}.items():
        a += value
    total = 0
    def add():
        nonlocal total
        total += 1
    add()
    match outputs:
        case {"x": x}:
            total += x
        case _:
            total = -1
    try:
        1 / 0
    except ZeroDivisionError as error:
        print("caught", error, sep=": ")
    words = sorted({w for w in re.findall(r"\\w+", "b a")})
    text = "{}-{item[k]:>3}".format(a, item={"k": c})
    return {"score": Counted(1).total() / 3, "total": total, "words": words, "text": text,
            "any": any(w == "a" for w in words), "mean": statistics.mean([min(1, 2), max(1, 2)]),
            "attr": hasattr(outputs, "nothing"), "json": json.loads("[1]"), "name": f"{math.pi:.2f}"}
"""


def test_ordinary_evaluator(start: Any, restricted_dir: Path) -> None:
    runner = start("--restricted", str(restricted_dir))
    frame = runner.load(ORDINARY, policy="restricted")
    assert frame.type == "loaded", body(frame)
    frame = runner.call({}, {"x": 5}, None)
    assert body(frame)["value"] == {
        "score": 1.0, "total": 6, "words": ["a", "b"], "text": "2-  3", "any": True, "mean": 1.5, "attr": False,
        "json": [1], "name": "3.14",
    }  # fmt: skip
    assert frame.header["logs"]["stdout"] == "caught: division by zero\n"


WITH_HELPERS = """
from __future__ import annotations
import copy, dataclasses, enum, functools, hashlib, typing
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cached_property, lru_cache, partial, partialmethod, singledispatch, update_wrapper, wraps
from urllib.parse import urlparse

def doubled(function):
    @wraps(function)
    def inner(*args):
        "inner"
        return function(*args) * 2
    return inner

@doubled
def one(x):
    "one"
    return x

@singledispatch
def kind(x):
    return "other"

@kind.register(int)
def of_int(x):
    return "int"

class Colour(Enum):
    RED = "red"

@dataclass(frozen=True)
class Part:
    name: str
    tags: list = field(default_factory=list)
    add = partialmethod(lambda self, a, b: a + b, 1)

    @cached_property
    def upper(self):
        return self.name.upper()

@dataclasses.dataclass(order=True)
class Sub(Part.mro()[-1]):
    n: int = 3

Point = namedtuple("Point", "x y")

def evaluate(inputs, outputs, trace):
    part = Part("a", ["t"])
    match part:
        case Part(name="b"):
            found = "b"
        case Part(name=name, tags=[tag]):
            found = name + tag
    match outputs:
        case str(text) if text:
            found += text
    lower = map(str.lower, ["X"])
    shown = list(map(str.format, ["{}!", "{0:>2}"], [1, 2])) + [partial("{}{}".format, 1)(2), str.format_map("{k}", {"k": 3})]
    return {"score": one(0.25), "doc": one.__doc__ if False else "", "kinds": [kind(1), kind("")], "found": found,
            "copied": copy.deepcopy(part) == part and copy.copy([1]) == [1], "shown": shown, "sum": part.add(2),
            "upper": part.upper, "n": Sub().n, "p": Point(1, 2).x, "colour": Colour.RED.value, "l": list(lower),
            "host": urlparse("http://a/b").hostname, "scrypt": callable(hashlib.scrypt), "same": type(int) is type,
            "asdict": dataclasses.asdict(part), "cast": typing.cast(int, 1), "fields": len(dataclasses.fields(part))}
"""


def test_helpers_of_the_library_work_as_documented(start: Any, restricted_dir: Path) -> None:
    runner = start("--restricted", str(restricted_dir))
    code = WITH_HELPERS.replace('"doc": one.__doc__ if False else "", ', "").replace("Part.mro()[-1]", "object")
    frame = runner.load(code, policy="restricted")
    assert frame.type == "loaded", body(frame)
    assert body(runner.call({}, "x", None))["value"] == {
        "score": 0.5, "kinds": ["int", "other"], "found": "atx", "copied": True, "shown": ["1!", " 2", "12", "3"], "sum": 3,
        "upper": "A", "n": 3, "p": 1, "colour": "red", "l": ["x"], "host": "a", "scrypt": True, "same": True,
        "asdict": {"name": "a", "tags": ["t"]}, "cast": 1, "fields": 2,
    }  # fmt: skip


ESCAPES = """
def mine(*args, **more): return 1
#
functools.update_wrapper(json.load, mine, assigned=("__code__",), updated=())
functools.wraps(mine, assigned=("__code__",), updated=())(json.load)
functools.wraps(mine)(json.load)
functools.update_wrapper(json, mine)
functools.update_wrapper(mine, operator).attrgetter("__class__")
functools.partial(functools.update_wrapper, json.load)(mine)
list(map(functools.update_wrapper, [json.load], [mine]))
str.format("{0.__class__}", 1)
"".join(map(str.format, ["{0.__class__}"], [1]))
functools.partial(str.format, "{0.__class__}")(1)
str.format_map("{a.__class__}", {"a": 1})
getattr(str, "format")("{0.__class__}", 1)
S("{0.__class__}").format(1)
S("{0.__class__}").raw(1)
S.format("{0.__class__}", 1)
collections.UserString("{0.__class__}").format(1)
collections.UserString.format(collections.UserString("{0.__class__}"), 1)
functools.lru_cache(str).format("{0.__class__}", 1)
string.Formatter().format("{0.__class__}", 1)
list(map(operator.attrgetter("__class__"), [1]))
operator.methodcaller("__reduce__")(1)
copy.dispatch_table[S] = lambda made: (lambda: json, (), {"loads": mine}); copy.copy(S("x"))
copy.copy(R.x)
json.codecs
statistics.sys
typing.get_type_hints(mine)
typing.sys
base64.main(["-e", "/etc/passwd"])
dataclasses.make_dataclass("X", ["x"])
dataclasses.dataclass(E("E", {"__annotations__": {"x=1": int}}))
dataclasses.dataclass(typing.TypedDict("T", {"x:__import__('os')=1": int}))
type(int)("X", (), {"__reduce_ex__": mine})
abc.ABCMeta("X", (), {})
type(E)("X", (E,), {})
enum.global_enum(E("X", {"loads": 1}, module="json"))
functools.singledispatch(mine).register(annotated)
functools.singledispatchmethod(mine).register(annotated)
dataclasses.fields(D)[0].name = "__class__"
setattr(dataclasses.fields(D)[0], "name", "__class__")
functools.cached_property(mine).attrname = "__class__"
functools.reduce(getattr, ["__class__"], 1)
agen().ag_frame
agen().ag_code
(lambda: 1).__code__
S.mro()[0].__subclasses__()
print.__self__
"""
PRELUDE = """
import abc, base64, collections, copy, dataclasses, enum, functools, json, operator, statistics, string, typing
def mine(*args, **more):
    return 1
def annotated(x: "().__class__"):
    return 1
async def agen():
    yield 1
class S(str):
    def raw(self, *args):
        return super().format(*args)
@dataclasses.dataclass
class D:
    x: int = 1
class E(enum.Enum):
    pass
R = enum.Enum("R", {"x": 1, "__copy__": None, "__reduce_ex__": lambda self, protocol: (lambda: json, (), {"loads": 1})})
"""
STATEMENTS = [one for one in ESCAPES.splitlines() if one.strip("#") and "def mine" not in one]


def refused_at_load(code: str) -> Any | None:
    """Return why the policy refuses this code when it is loaded; None if the code is refused only while a row runs."""
    from evaluator_runner.failures import Failure  # noqa: PLC0415 - a module of the runner, whose folder conftest.py adds to the path
    from evaluator_runner.restricted import compile_code  # noqa: PLC0415 - as above

    try:
        compile_code(code, [])
    except Failure as refused:
        return refused
    return None


def way(number: int, statement: str) -> str:
    expression = (
        "=" not in statement.replace("==", "").partition("(")[0] and ";" not in statement and " = " not in statement
    )
    return f"def way_{number}():\n    {'return ' if expression else ''}{statement}\n"


@pytest.fixture(scope="module")
def do(restricted_dir: Path) -> Iterator[Callable[[int], Any]]:
    """Yield a function that runs one statement in a separate row, unless the policy refuses the statement at load."""
    loaded = {number: way(number, one) for number, one in enumerate(STATEMENTS)}
    loaded = {number: code for number, code in loaded.items() if refused_at_load(PRELUDE + code) is None}
    ways = ", ".join(f"{number}: way_{number}" for number in loaded)
    code = f"{PRELUDE}{''.join(loaded.values())}def evaluate(a, b, c):\n    return {{{ways}}}[b]()\n"
    with RunnerProcess([*COMMAND, "--restricted", str(restricted_dir)]) as runner:
        frame = runner.load(code, policy="restricted")
        assert frame.type == "loaded", body(frame)
        yield lambda number: runner.call({}, number, None)


@pytest.mark.parametrize("number", range(len(STATEMENTS)), ids=STATEMENTS)
def test_attributes_by_text_and_code_from_text_are_refused(do: Callable[[int], Any], number: int) -> None:
    refused = refused_at_load(PRELUDE + way(number, STATEMENTS[number]))
    if refused is not None:
        assert refused.code == "policy_violation"
        return
    frame = do(number)
    assert frame.type == "failed", body(frame)
    assert body(frame)["error"]["code"] == "policy_violation", body(frame)


MODULE_PATTERNS = {
    "of object": "match statistics:\n        case object(sys=found): return str(found)",
    "of a module's class": "match statistics:\n        case M(sys=found): return str(found)",
    "of an ABC": "match statistics:\n        case A(sys=found): return str(found)",
    "by position": "match statistics:\n        case P(found): return str(found)",
    "of a type": "match str:\n        case object(format=found): return found('{0.__class__}', 1)",
    "of a string": "match '{0.__class__}':\n        case object(format=found): return found(1)",
    "nested": "match [statistics]:\n        case [object(sys=found)]: return str(found)",
    "of a name like a built-in's": "match statistics:\n        case str(found): return str(found)",
}


@pytest.mark.parametrize("kind", MODULE_PATTERNS)
def test_patterns_read_attributes_of_the_codes_own_classes_only(kind: str) -> None:
    code = (
        "import abc, dataclasses, statistics\nM = type(statistics)\n"
        "class A(abc.ABC):\n    pass\nA.register(M)\n"
        "@dataclasses.dataclass\nclass P(abc.ABC):\n    sys: int\nP.register(M)\n"
        + ("str = P\n" if "built-in" in kind else "")
        + f"def evaluate(a, b, c):\n    {MODULE_PATTERNS[kind]}\n"
    )
    refused = refused_at_load(code)
    assert refused is not None
    assert refused.code == "policy_violation"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("import os", 3),
        ("import subprocess", 3),
        ("from statistics import sys", 3),
        ("import statistics; statistics.sys", 3),
        ("import operator; operator.attrgetter('__class__')", 3),
        ("().__class__", 3),
        ("getattr((), '__class__')", 3),
        ("'{0.__class__}'.format(1)", 3),
        ("'{x.__class__}'.format_map({'x': 1})", 3),
        ("open('/etc/passwd')", 3),
        ("eval('1')", 3),
        ("exec('1')", 3),
        ("import math; math.pi = 3", 3),
        ("(lambda: 1).__globals__", 3),
        (
            "(i for i in []).gi_frame",
            3,
        ),  # published attacks: CVE-2023-37271, CVE-2023-41039, CVE-2024-47532, CVE-2025-22153, CVE-2026-55830
        ("import string; string.Formatter().format('{0.__class__}', 1)", 3),
        (
            "try:\n        ''.x\n    except AttributeError as error:\n        import string; string.Formatter().get_field('0.obj', [error], {})",
            6,
        ),
        ("try:\n        1 / 0\n    except* ZeroDivisionError:\n        pass", 3),
        ("(lambda _getattr_, /: ''.join)(lambda one, name: one)", 3),
    ],
)
def test_violations_name_their_line(start: Any, restricted_dir: Path, statement: str, line: int) -> None:
    code = f"def evaluate(inputs, outputs, trace):\n    x = 1\n    {statement}\n    return x\n"
    refused = refused_at_load(code)
    if refused is not None:
        assert (refused.code, refused.line) == ("policy_violation", line)
        return
    runner = start("--restricted", str(restricted_dir))
    assert runner.load(code, policy="restricted").type == "loaded"
    error = body(runner.call({}, 1, None))["error"]
    assert (error["code"], error["line"]) == ("policy_violation", line)


@pytest.mark.parametrize(("statement", "type_"), [("().__class__", "load_failed"), ("import os", "failed")])
@pytest.mark.parametrize("contract", ["evaluate", "main"])
def test_a_runner_answers_with_the_violation(
    start: Any, restricted_dir: Path, statement: str, type_: str, contract: str
) -> None:
    runner = start("--restricted", str(restricted_dir))
    head = "def main():" if contract == "main" else "def evaluate(inputs, outputs, trace):"
    frame = runner.load(f"{head}\n    x = 1\n    {statement}\n    return x\n", policy="restricted")
    if frame.type == "loaded":
        frame = runner.call_named({}) if contract == "main" else runner.call({}, 1, None)
    error = body(frame)["error"]
    assert (frame.type, error["code"], error["line"]) == (type_, "policy_violation", 3)


def test_pinned_packages_may_be_imported(start: Any, restricted_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "pinned_one.py").write_text("import os\nVALUE = 0.5\n")
    runner = start("--restricted", str(restricted_dir), "--packages", str(tmp_path))
    code = "import pinned_one\ndef evaluate(a, b, c):\n    return pinned_one.os if b else pinned_one.VALUE\n"
    assert runner.load(code, policy="restricted").type == "loaded"
    assert body(runner.call({}, False, None))["value"] == 0.5
    assert body(runner.call({}, True, None))["error"]["code"] == "policy_violation"


def test_syntax_errors_stay_syntax_errors(start: Any, restricted_dir: Path) -> None:
    frame = start("--restricted", str(restricted_dir)).load("def evaluate(a, b, c:\n    pass\n", policy="restricted")
    assert (body(frame)["error"]["code"], body(frame)["error"]["line"]) == ("syntax_error", 1)


def test_policy_without_restrictedpython_is_refused(start: Any) -> None:
    frame = start().load("def evaluate(a, b, c): return 1\n", policy="restricted")
    assert body(frame)["error"]["code"] == "load_error"
