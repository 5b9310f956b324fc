"""Evaluators like the examples in other products' documentation, and the scores that they must give."""

from typing import Any

from evaluator_host.types.evaluator import Language
from tests.contract.cases.case import Case, Expected, failed, scored
from tests.contract.cases.sources import numbered

EXACT_PY = """\
from typing import Any, Dict


def evaluate(inputs: Dict[str, Any], outputs: Any, trace: Dict[str, Any]) -> float:
    return 1.0 if outputs == inputs.get("correct_answer") else 0.0
"""
EXACT_JS = """\
function evaluate(inputs, outputs, trace) {
  const hit = outputs === inputs.correct_answer
  return hit ? 1.0 : 0.0
}
"""
EXACT_TS = """\
function evaluate(
  inputs: Record<string, any>,
  outputs: any,
  trace: Record<string, any>
): number {
  const hit: boolean = outputs === inputs.correct_answer
  return hit ? 1.0 : 0.0
}
"""
EXACT = {Language.PYTHON: EXACT_PY, Language.JAVASCRIPT: EXACT_JS, Language.TYPESCRIPT: EXACT_TS}
LEGACY_PY = (
    "def evaluate(app_params, inputs, output, correct_answer) -> float:\n    return float(output in correct_answer)\n"
)

JSON_COMPARISON = '''\
def main(
 completion: str,
 target: str,
) -> dict:
 """Compares two JSON objects, whatever their key order and spacing."""
 left = json.loads(completion)
 right = json.loads(target)
 pairs = set(left.items())
 wanted = set(right.items())
 equal = pairs == wanted

 return {
 "score": 1.0 if equal else 0.0,
 }
'''
WHITESPACE = '''\
def main(
 completion: str,
 target: str,
) -> dict:
 """Compares two texts but for the blanks around them."""
 equal = completion.strip() == target.strip()

 return {
 "score": 1.0 if equal else 0.0,
 }
'''
MATHS_TS = """\
import * as numbers from "node:buffer"

async function main(variables: {
 completion: string,
 target: string,
}): Promise<{ score: number }> {
 return {
 score: variables.target.length + Math.floor(7.55) + numbers.kMaxLength * 0,
 }
}
"""


def exact(
    name: str, answer: Any, outputs: Any, score: float, languages: tuple[Language, ...] = tuple(Language)
) -> list[Case]:
    return [
        Case(
            id=f"documented-exact-{name}-{language}",
            language=language,
            code=EXACT[language],
            inputs={"correct_answer": answer},
            outputs=outputs,
            threshold=0.5,
            expected=scored(score, passed=score >= 0.5, contract="evaluate"),
        )
        for language in languages
    ]


def pasted(name: str, code: str, language: Language, completion: str, target: str, expected: Expected) -> list[Case]:
    """Return two cases: the example itself, and the example with the line numbers that people copy from its page."""
    cleaned = Expected(
        **{f: getattr(expected, f) for f in Expected.__slots__} | {"warnings": expected.warnings | {"source_cleaned"}}
    )
    return [
        Case(
            id=f"documented-{name}-{form}",
            language=language,
            code=text,
            variables={"completion": completion, "target": target},
            expected=wanted,
        )
        for form, text, wanted in (("plain", code, expected), ("gutter", numbered(code, "{}{}"), cleaned))
    ]


PY, TS = Language.PYTHON, Language.TYPESCRIPT

CASES = [
    *exact("hit", "Paris", "Paris", 1.0),
    *exact("miss", "Paris", "Lyon", 0.0),
    *exact("objects", {"a": 1}, {"a": 1}, 1.0, (Language.PYTHON,)),
    *exact("objects-by-identity", {"a": 1}, {"a": 1}, 0.0, (Language.JAVASCRIPT, Language.TYPESCRIPT)),
    Case(id="documented-legacy", language=PY, code=LEGACY_PY, inputs={"correct_answer": "Paris!"}, outputs="Paris", expected=scored(1, contract="evaluate-v1")),
    *pasted("json-spacing", JSON_COMPARISON, PY, '{"a": 1}', '{"a":1}', scored(1.0, contract="main")),
    *pasted("json-order", JSON_COMPARISON, PY, '{"b":2,"a":1}', '{"a":1,"b":2}', scored(1.0)),
    *pasted("json-other", JSON_COMPARISON, PY, '{"a": 1}', '{"a":2}', scored(0.0)),
    *pasted("json-nested", JSON_COMPARISON, PY, '{"a":[1]}', '{"a":[1]}', failed("user_exception", "unhashable type: 'list'", type="TypeError", line=8)),
    *pasted("json-list", JSON_COMPARISON, PY, "[1]", "[1]", failed("user_exception", "no attribute 'items'", type="AttributeError", line=8)),
    *pasted("json-none", JSON_COMPARISON, PY, "nope", "{}", failed("user_exception", line=6)),
    *pasted("whitespace", WHITESPACE, PY, "  yes\n", "yes", scored(1.0)),
    *pasted("whitespace-miss", WHITESPACE, PY, "  no\n", "yes", scored(0.0)),
    *pasted("over-range", MATHS_TS, TS, "x", "abc", scored(10, warnings="out_of_range", contract="main")),
]  # fmt: skip
