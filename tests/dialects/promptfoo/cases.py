"""promptfoo's assertions in Python and JavaScript (files, functions, one-liners and bodies), and the results that
promptfoo stores.

The expected results follow promptfoo 0.121.20: its handlers for Python and JavaScript assertions, and
python/wrapper.py.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from tests.dialects.cases import NativeCase

VARS = {"expected": "Paris", "topic": "capitals", "n": 3, "nested": {"a": ["x", "y"]}, "yes": True}
ROW = Row(variables={"output": "Paris", "context": {"vars": VARS}})
OURS = Row({"topic": "capitals", "correct_answer": "Paris"}, "Paris")
PASSED = {"pass": True, "score": 1.0, "reason": "Assertion passed"}
FALSE = {Language.PYTHON: "Python code returned false", Language.JAVASCRIPT: "Custom function returned false"}

case = partial(NativeCase, row=ROW, recognised=Contract("promptfoo"))
javascript = partial(case, language=Language.JAVASCRIPT)


def refused(reason: str, **more: Any) -> dict[str, Any]:
    """Return the expected result for a value that promptfoo refuses."""
    return {
        "status": "failed",
        "error": "invalid_result",
        "native": [{"pass": False, "score": 0, "reason": reason}],
        **more,
    }


def plain(passed: bool, score: float, language: Language = Language.PYTHON) -> dict[str, Any]:
    """Return the expected result for a bool or a number."""
    native = {"pass": passed, "score": score, "reason": "Assertion passed" if passed else FALSE[language]}
    return {"native": [native], "score": score, "passed": passed}


def returns(value: str) -> str:
    """Return the content of a Python file with an assertion that returns this expression."""
    return f"def get_assert(output, context):\n    return {value}\n"


def exports(value: str) -> str:
    """Return the content of a JavaScript file with an assertion that returns this expression."""
    return f"module.exports = (output, context) => ({value});"


TAKES = "must return a boolean, number, or {pass, score, reason} object"
PY_DICT = f"Python code execution failed: Python assertion {TAKES}. Got instead:"
PY_OTHER = f"Python code execution failed: Python assertion {TAKES}. Instead got:"
JS_DICT = f"Custom function threw error: Custom function {TAKES}. Got instead:"
JS_OTHER = f"Custom function threw error: Custom function {TAKES}. Instead got:"

CASES = [
    case(id="the only function of an assert's file", code="def has_answer(output, context):\n    return context['vars']['expected'] in output\n", **plain(True, 1.0)),
    case(id="functions of an assert's file, declared contract", contract=Contract("promptfoo"), code="def a(output, context):\n    return True\n\ndef b(output, context):\n    return False\n", score=0.5, passed=False, metrics={"a": 1.0, "b": 0.0}, warnings=frozenset({"several_entries"})),
    case(id="functions of an assert's file", code="def a(output: str, context: dict):\n    return True\n\ndef b(output: str, context: dict):\n    return False\n", score=0.5, passed=False, metrics={"a": 1.0, "b": 0.0}, warnings=frozenset({"several_entries"})),
    case(id="bool", code=returns("output == context['vars']['expected']"), **plain(True, 1.0)),
    case(id="false", code=returns("False"), **plain(False, 0.0)),
    case(id="number", code=returns("0.5"), **plain(True, 0.5)),
    case(id="zero", code=returns("0"), **plain(False, 0)),
    case(id="number below the threshold", threshold=0.6, code=returns("0.5"), **plain(False, 0.5)),
    case(id="number at the threshold", threshold=0.5, code=returns("0.5"), **plain(True, 0.5)),
    case(id="zero at a threshold of zero", threshold=0.0, code=returns("0"), **plain(True, 0)),
    case(id="object", code=returns("{'pass': True, 'score': 0.75, 'reason': 'close'}"), native=[{"pass": True, "score": 0.75, "reason": "close"}], score=0.75, passed=True, reason="close"),
    case(
        id="object in snake case", code=returns("{'pass_': True, 'score': 1, 'reason': 'r', 'named_scores': {'a': 0.5}, 'component_results': [], 'tokens_used': {'total': 1}}"),
        native=[{"pass": True, "score": 1, "reason": "r", "namedScores": {"a": 0.5}, "componentResults": [], "tokensUsed": {"total": 1}}], metrics={"score": 1, "a": 0.5},
    ),
    case(id="object below the threshold", threshold=0.8, code=returns("{'pass': True, 'score': 0.75, 'reason': 'close'}"), native=[{"pass": False, "score": 0.75, "reason": "Python score 0.75 is less than threshold 0.8"}], passed=False),
    case(id="object without a reason", code=returns("{'pass': True, 'score': 0.75}"), **refused(PY_DICT)),
    case(id="object with text as score", code=returns("{'pass': True, 'score': '1', 'reason': ''}"), **refused(PY_DICT)),
    case(id="text true", code=returns("'TRUE'"), **plain(True, 1.0)),
    case(id="text false", code=returns("'false'"), **plain(False, 0.0)),
    case(id="text that begins with a number", code=returns("'0.75 out of 1'"), **plain(True, 0.75)),
    case(id="text of an object", code=returns("""'{"pass": false, "score": 0.2, "reason": "far"}'"""), native=[{"pass": False, "score": 0.2, "reason": "far"}], passed=False),
    case(id="other text", code=returns("'good'"), **refused(PY_OTHER)),
    case(id="None", code=returns("None"), **refused(PY_OTHER)),
    case(id="a list", code=returns("[1]"), **refused(PY_OTHER)),
    case(id="an exception", code="def get_assert(output, context):\n    raise ValueError('bad')\n", status="failed", error="user_exception", native=[{"pass": False, "score": 0, "reason": "Python execution failed: ValueError: bad"}], line=2),
    case(id="a coroutine function", code="async def get_assert(output, context):\n    return True\n", **plain(True, 1.0)),
    case(id="config of the assertion", settings=EvaluatorSettings(config={"minimum": 3}), code=returns("len(output) >= context['config']['minimum']"), **plain(True, 1.0)),
    case(id="another function of the file", contract=Contract("promptfoo"), settings=EvaluatorSettings(entry="check"), code="def check(output, context):\n    return output == 'Paris'\n", **plain(True, 1.0)),
    case(id="a method of a class", contract=Contract("promptfoo"), settings=EvaluatorSettings(entry="Checks.city"), code="class Checks:\n    @staticmethod\n    def city(output, context):\n        return output == 'Paris'\n", **plain(True, 1.0)),
    case(id="inline expression", code="output == 'Paris'", **plain(True, 1.0)),
    case(id="inline number", code="len(output) / 10", **plain(True, 0.5)),
    case(id="inline generator", code="all(word in output for word in ['Par', 'is'])", **plain(True, 1.0)),
    case(id="inline body", code="data = json.loads('{\"a\": 1}')\nif output == 'Paris':\n    return data['a']\nreturn 0\n", **plain(True, 1)),
    case(id="inline body that was indented", contract=Contract("promptfoo"), code="import re\nreturn bool(re.match('P', output))", **plain(True, 1.0)),
    case(id="inline, an exception has its line", code="x = 1\nreturn output.missing", status="failed", error="user_exception", line=2),
    case(id="inline, a variable", code="output == '{{expected}}' and {{ n }} == 3 and '{{nested.a[1]}}' == 'y' and '{{ none }}' == ''", **plain(True, 1.0)),
    case(id="inline, a variable in a body", code="wanted = '{{ expected }}'\nreturn output == wanted", **plain(True, 1.0)),
    case(id="inline, a filter", code="output == '{{ expected | upper }}'", recognised=None, status="failed", error="syntax_error", message="context['vars']"),
    case(id="a row in the host's form", row=OURS, code="output == context['vars']['expected'] and context['vars']['topic'] == 'capitals'", **plain(True, 1.0)),
    case(id="variables without an output", row=Row(variables={"context": {}}), code="output == 1", status="failed", error="missing_input", message="'output'"),
    javascript(id="JavaScript: module.exports", code=exports("output === context.vars.expected"), **plain(True, 1.0)),
    javascript(id="JavaScript: several functions, one of which takes the context", code="export const wanted = (output, context) => ({ pass: true, score: context.vars.expected === output ? 1 : 0, reason: 'r' });\nexport const short = (output) => ({ pass: false, score: output.length > 9 ? 1 : 0, reason: 'r' });\n", score=0.5, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: get_assert", code="function get_assert(output, context) { return output.length / 10 }", **plain(True, 0.5)),
    javascript(id="JavaScript: default export", code="export default async (output, { vars }) => ({ pass: output.includes(vars.expected), score: 0.5, reason: 'found' });", native=[{"pass": True, "score": 0.5, "reason": "found"}]),
    javascript(id="JavaScript: one parameter", code="module.exports = (output) => output.length === 4", **plain(False, 0.0, Language.JAVASCRIPT)),
    javascript(id="JavaScript: a named export", contract=Contract("promptfoo"), settings=EvaluatorSettings(entry="check"), code="module.exports = { check: (output) => true }", **plain(True, 1.0)),
    javascript(id="JavaScript: a threshold does not apply to objects", threshold=0.8, code=exports("{ pass: true, score: 0.5, reason: 'r' }"), native=[{"pass": True, "score": 0.5, "reason": "r"}], passed=True),
    javascript(id="JavaScript: a threshold applies to numbers", threshold=0.8, code=exports("0.5"), **plain(False, 0.5, Language.JAVASCRIPT)),
    javascript(id="JavaScript: NaN", code=exports("NaN"), status="failed", error="non_finite"),
    javascript(id="JavaScript: text", code=exports("'true'"), **refused(JS_OTHER)),
    javascript(id="JavaScript: null", code=exports("null"), **refused(JS_OTHER)),
    javascript(id="JavaScript: undefined", code=exports("undefined"), **refused(JS_OTHER)),
    javascript(id="JavaScript: object without a reason", code=exports("{ pass: true, score: 1 }"), **refused(JS_DICT)),
    javascript(id="JavaScript: throws", code="output.missing.length", status="failed", error="user_exception", native=[{"pass": False, "score": 0, "reason": "Custom function threw error: Cannot read properties of undefined (reading 'length')"}]),
    javascript(id="JavaScript: inline expression", code="output === 'Paris' && context.vars.topic.length > 2", **plain(True, 1.0)),
    javascript(id="JavaScript: inline object", code="({ pass: output === 'Paris', score: 1, reason: 'same' });", native=[{"pass": True, "score": 1, "reason": "same"}]),
    javascript(id="JavaScript: inline const", code="const n = output.length; n > 3", **plain(True, 1.0)),
    javascript(id="JavaScript: inline body", code="const ok = output === context.vars.expected;\nreturn { pass: ok, score: ok ? 1 : 0, reason: 'body' };", native=[{"pass": True, "score": 1, "reason": "body"}]),
    javascript(id="JavaScript: inline body with a function and require", code="function same(a, b) { return a === b }\nconst path = process.mainModule.require('path');\nreturn same(output, path.basename('/x/Paris'));", **plain(True, 1.0)),
    javascript(id="JavaScript: inline, a variable", code="output === '{{expected}}' && {{ n }} === 3 && '{{nested.a[1]}}' === 'y' && {{ yes }}", **plain(True, 1.0)),
    javascript(id="JavaScript: inline, a variable in a body", code="const wanted = '{{ expected }}';\nreturn output === wanted;", **plain(True, 1.0)),
    case(id="inline body without return", contract=Contract("promptfoo"), code="def check(text):\n    return 'sorry' in text.lower()\n\ncheck(output)\n", **refused(PY_OTHER)),
    javascript(id="JavaScript: inline arrow", code="(output) => output.length < 100", **plain(True, 1.0)),
    javascript(id="JavaScript: inline expression with an arrow", code="output.split('').filter(one => one === 'P').length <= 2", **plain(True, 1.0)),
    javascript(id="JavaScript: inline arrow function with two parameters, on several lines", code="async (output, { vars }) => {\n  return { pass: output === vars.expected, score: 0.5, reason: 'same' };\n};", native=[{"pass": True, "score": 0.5, "reason": "same"}]),
    javascript(id="JavaScript: inline body that only throws", contract=Contract("promptfoo"), code="const n = output.length;\nif (n < 9) {\n  throw new Error(`too short: ${n}`);\n}", status="failed", error="user_exception", message="too short: 5", line=3),
    javascript(id="JavaScript: inline body without return", contract=Contract("promptfoo"), code="const n = output.length;\nif (n > 9) {\n  throw new Error('too long');\n}", **refused(JS_OTHER)),
    javascript(id="JavaScript: inline, a name that promptfoo does not give", contract=Contract("promptfoo"), code="metadata?.trace?.some((one) => one.name === 'a')", status="failed", error="user_exception", message="metadata is not defined"),
    javascript(id="JavaScript: inline, a filter", code="output === '{{ expected | upper }}'", status="failed", error="user_exception", message="context.vars"),
    javascript(id="JavaScript: several functions of a module", code="function none(output, context) { return { pass: false, score: 0, reason: 'none' } }\nfunction all(output, context) { return { pass: true, score: 1, reason: 'all' } }\nmodule.exports = { none, all };", score=0.5, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: several functions of a module, declared contract", contract=Contract("promptfoo"), code="function none(output, context) { return { pass: false, score: 0, reason: 'none' } }\nfunction all(output, context) { return { pass: true, score: 1, reason: 'all' } }\nmodule.exports = { none, all };", score=0.5, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: a row in the host's form", row=OURS, code="output === context.vars.expected", **plain(True, 1.0)),
]  # fmt: skip
