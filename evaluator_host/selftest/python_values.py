"""Python attacks by what is returned: values that lie, that have no end, that no format can hold."""

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import (
    CALM_SCORE,
    Attack,
    Expected,
    Group,
    Guard,
    fails,
    scores,
    whole,
)

INVALID: Final = fails(ErrorCode.INVALID_RESULT)
_TOO_LARGE: Final = fails(ErrorCode.RESULT_TOO_LARGE)
_NON_FINITE: Final = fails(ErrorCode.NON_FINITE)
_BOUNDED: Final = "the runner writes a value itself, level by level, and names what it cannot write"
_BY_TYPE: Final = "a subclass is read by the methods of its built-in base, so that it cannot lie"


def value(
    name: str, body: str, *expected: Expected, why: str, without: object = Guard.ENCODING, **more: object
) -> Attack:
    """An evaluator whose `value()` is what it returns for every row."""
    code = body.strip("\n") + "\n\ndef evaluate(inputs, outputs, trace):\n    return value()\n"
    return whole(name, Group.VALUES, code, *expected, why=why, without=without, **more)


def expression(name: str, text: str, *expected: Expected, why: str, **more: object) -> Attack:
    """An evaluator that returns an expression."""
    return value(name, f"def value():\n    return {text}\n", *expected, why=why, **more)


ATTACKS: Final[tuple[Attack, ...]] = (
    value(
        "cyclic-value",
        "def value():\n    a = []\n    a.append(a)\n    return {'score': 0.5, 'a': a}\n",
        INVALID,
        why=_BOUNDED,
    ),
    value(
        "cyclic-by-way-of-a-method",
        """
class Model:
    def model_dump(self, **how):
        return {"score": 0.5, "again": self}

def value():
    return Model()
""",
        INVALID,
        why=_BOUNDED,
    ),
    value(
        "deep-value",
        """
def value():
    deep = 0.5
    for _ in range(10**5):
        deep = [deep]
    return {"score": deep}
""",
        INVALID,
        why=_BOUNDED,
    ),
    value(
        "model-that-unfolds-for-ever",
        """
class Model:
    def model_dump(self, **how):
        return {"score": 0.5, "again": Model()}

def value():
    return Model()
""",
        INVALID,
        why=_BOUNDED,
    ),
    expression(
        "huge-text",
        "{'score': 0.5, 'reason': 'x' * (2 << 20)}",
        _TOO_LARGE,
        why="a result has a size",
        without=Guard.RESULT,
    ),
    expression(
        "huge-list",
        "{'score': 0.5, 'a': [0.1] * (4 * 10**5)}",
        _TOO_LARGE,
        why="a result has a size",
        without=Guard.RESULT,
    ),
    value(
        "wide-and-shared",
        """
def value():
    level = [0.5] * 10
    for _ in range(30):
        level = [level] * 10  # 10^31 numbers in a kilobyte
    return {"score": 0.5, "a": level}
""",
        _TOO_LARGE,
        why="what is written is counted while it is written",
        without=Guard.VERDICT,
    ),
    expression(
        "not-a-number", "float('nan')", _NON_FINITE, why="the path of what is not finite travels beside the value"
    ),
    expression("infinity-inside", "{'score': 0.5, 'a': [{'b': float('-inf')}]}", _NON_FINITE, why="wherever it is"),
    expression(
        "number-beyond-all",
        "10**400",
        _NON_FINITE,
        why="a number that no float holds is not finite",
        without=Guard.VERDICT,
    ),
    expression("integer-of-a-million-digits", "1 << 3_000_000", _NON_FINITE, why="it is compared, not written"),
    expression(
        "lone-surrogates",
        "{'score': 0.25, 'reason': '\\ud800 \\udfff', '\\udc80': 1}",
        scores(CALM_SCORE),
        why="half a surrogate pair is no text and is replaced",
    ),
    expression(
        "keys-that-are-no-text",
        "{'score': 0.25, 1: 1, None: 2, (3, 4): 3, 1.5: 4, b'x': 5}",
        scores(CALM_SCORE),
        why="keys are made text by the runner, with a note",
    ),
    expression(
        "key-of-no-text",
        "{'score': 0.25, type('K', (), {'__str__': lambda k: 1 / 0})(): 1}",
        INVALID,
        why="a key whose text cannot be had is named",
    ),
    value(
        "text-that-lies",
        """
class Text(str):
    def __str__(self): return "0.75"
    def encode(self, *rest): return b"0.75"
    def __iter__(self): raise SystemExit
    def isascii(self): return True

def value():
    return {"score": Text("0.25"), "reason": Text("\\ud800"), Text("a"): 1}
""",
        scores(CALM_SCORE),
        why=_BY_TYPE,
    ),
    value(
        "object-that-lies",
        """
class Object(dict):
    def items(self): return [("score", 0.75)]
    def __iter__(self): return iter(["score"] * 10**9)
    def __getitem__(self, key): return 0.75
    def __len__(self): return 1
    def __bool__(self): return False

def value():
    return Object(score=0.25)
""",
        scores(CALM_SCORE),
        why=_BY_TYPE,
    ),
    value(
        "number-that-lies",
        """
class Number(float):
    def __float__(self): return 0.75
    def __repr__(self): return "0.75, \\"passed\\": true"
    def __lt__(self, other): return True
    def __eq__(self, other): return True

def value():
    return Number(0.25)
""",
        scores(CALM_SCORE),
        why=_BY_TYPE,
    ),
    value(
        "class-that-lies",
        """
class Liar:
    @property
    def __class__(self): return float
    def __getattr__(self, name): raise SystemExit(name)

def value():
    return Liar()
""",
        INVALID,
        why="the type of a value is asked of the interpreter, not of the value",
    ),
    expression(
        "a-hundred-thousand-metrics",
        "{'score': 0.25, **{f'm{n}': n for n in range(10**5)}}",
        _TOO_LARGE,
        why="result_kb bounds their number",
        without=Guard.RESULT,
    ),
)
