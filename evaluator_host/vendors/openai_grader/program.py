"""Computes the scores of graders without code. This file runs in a sandbox, as an evaluator of contract `evaluate`.

`inputs` is `{"action": "grade", "grader", "item", "sample"}` or `{"action": "calculate", "formula", "scores"}`. The
program returns `{"score": float, "error": OpenAI's name for the error or "", "details": text}`, and needs no package.
"""

import ast
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_WORD = re.compile(r"[a-z0-9]+")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
}


class GraderError(Exception):
    """A grader failed; `name` is OpenAI's name for the error, and the message has the details."""

    def __init__(self, name: str, details: str) -> None:
        super().__init__(details)
        self.name = name


def evaluate(inputs: dict[str, Any], outputs: Any, trace: Any) -> dict[str, Any]:  # noqa: ARG001
    """Return a grader's score, or the value of a formula that combines scores."""
    try:
        score = calculate(inputs) if inputs["action"] == "calculate" else grade(inputs)
    except GraderError as error:
        return {"score": 0.0, "error": error.name, "details": str(error)}
    return {"score": float(score), "error": "", "details": ""}


def grade(inputs: dict[str, Any]) -> float:
    """Return the score of a `string_check` or `text_similarity`."""
    grader = inputs["grader"]
    names = {"item": inputs["item"], "sample": inputs["sample"]}
    given, wanted = (rendered(grader[name], names) for name in ("input", "reference"))
    if grader["type"] == "string_check":
        return float(_CHECKS[grader["operation"]](given, wanted))
    return _SIMILARITIES[grader["evaluation_metric"]](given, wanted)


def rendered(text: str, names: dict[str, Any]) -> str:
    """Replace a template's placeholders, such as `{{item.a.b[0]}}` and `{{sample.output_text}}`, with their values."""
    return _TEMPLATE.sub(lambda match: found(match.group(1).strip(), names), text)


def found(path: str, names: dict[str, Any]) -> str:
    """Return the value at a path as text: a string unchanged, anything else as JSON."""
    value: Any = names
    for name, index in _STEP.findall(path):
        try:
            value = value[int(index)] if index else value[name.strip()]
        except (KeyError, IndexError, TypeError):
            raise GraderError("invalid_variable_error", f"there is no {path}") from None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_CHECKS: dict[str, Callable[[str, str], bool]] = {
    "eq": lambda given, wanted: given == wanted,
    "ne": lambda given, wanted: given != wanted,
    "like": lambda given, wanted: wanted in given,
    "ilike": lambda given, wanted: wanted.casefold() in given.casefold(),
}


def fuzzy_match(given: str, wanted: str) -> float:
    """Return the fraction of all characters that is in the longest common subsequence, like rapidfuzz's `ratio`."""
    whole = len(given) + len(wanted)
    return 2 * common(given, wanted) / whole if whole else 1.0


def common(first: Any, second: Any) -> int:
    """Return the length of the longest common subsequence. The bits of one large integer hold the state."""
    places: dict[Any, int] = {}
    for at, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << at
    every = (1 << len(first)) - 1
    row = every
    for item in second:
        match = row & places.get(item, 0)
        row = ((row + match) | (row - match)) & every
    return len(first) - row.bit_count()


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(text.lower())


def grams(tokens: list[str], size: int) -> Counter[tuple[str, ...]]:
    """Return how often each n-gram of `size` tokens occurs."""
    return Counter(tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1))


def rouge(size: int) -> Callable[[str, str], float]:
    """Return a function that computes ROUGE-N for two texts: the F1 score of their n-grams of `size` words."""

    def score(given: str, wanted: str) -> float:
        mine, theirs = grams(words(given), size), grams(words(wanted), size)
        return f1(sum((mine & theirs).values()), sum(mine.values()), sum(theirs.values()))

    return score


def rouge_l(given: str, wanted: str) -> float:
    """Return ROUGE-L: the F1 of the longest common subsequence of words."""
    mine, theirs = words(given), words(wanted)
    return f1(common(mine, theirs), len(mine), len(theirs))


def f1(same: int, mine: int, theirs: int) -> float:
    """Return the harmonic mean of precision `same / mine` and recall `same / theirs`."""
    return 2 * same / (mine + theirs) if same else 0.0


def bleu(given: str, wanted: str) -> float:
    """Return the sentence BLEU over n-grams of up to 4 words; an n without a match counts as 0.1 (NLTK's method 1)."""
    mine, theirs = given.split(), wanted.split()
    if not mine or not theirs:
        return 0.0
    if not (grams(mine, 1) & grams(theirs, 1)):
        return 0.0
    logs = 0.0
    for size in range(1, 5):
        have = grams(mine, size)
        same = sum((have & grams(theirs, size)).values())
        logs += math.log((same or 0.1) / max(1, sum(have.values()))) / 4
    return math.exp(logs + min(0.0, 1 - len(theirs) / len(mine)))


def gleu(given: str, wanted: str) -> float:
    """Return Google's BLEU over n-grams of up to 4 words: the smaller of precision and recall."""
    mine, theirs = given.split(), wanted.split()
    same = most = 0
    for size in range(1, 5):
        have, want = grams(mine, size), grams(theirs, size)
        same += sum((have & want).values())
        most += max(sum(have.values()), sum(want.values()))
    return same / most if most else 0.0


_SIMILARITIES: dict[str, Callable[[str, str], float]] = {
    "fuzzy_match": fuzzy_match,
    "bleu": bleu,
    "gleu": gleu,
    "rouge_l": rouge_l,
    **{f"rouge_{size}": rouge(size) for size in range(1, 6)},
}


def calculate(inputs: dict[str, Any]) -> float:
    """Compute a formula that refers to scores by their names."""
    try:
        tree = ast.parse(inputs["formula"].replace("^", "**").strip(), mode="eval").body
        value = computed(tree, inputs["scores"])
    except (SyntaxError, ValueError, TypeError, RecursionError, ArithmeticError) as error:
        raise GraderError("formula_parse_error", f"{type(error).__name__}: {error}") from None
    if not math.isfinite(value):
        raise GraderError("formula_parse_error", "the formula has no finite value")
    return value


def computed(node: ast.expr, scores: dict[str, float]) -> float:
    """Compute the value of a node in a formula's syntax tree."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name not in scores:
                raise GraderError("invalid_variable_error", f"no grader is called {name}")
            return scores[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -computed(inner, scores)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](computed(left, scores), computed(right, scores))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(computed(one, scores) for one in args))
        case _:
            raise GraderError("formula_parse_error", f"{ast.unparse(node)[:80]} cannot be part of a formula")
