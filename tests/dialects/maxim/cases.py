"""Programmatic evaluators of Maxim in Python, JavaScript and TypeScript.

The expected results follow Maxim's web pages, because the platform itself could not be run.
"""

from functools import partial

from evaluator_host.types.evaluator import Contract, Language, Row
from tests.dialects.cases import NativeCase

ROW = Row(variables={"input": "2+2", "output": "4", "expectedOutput": "4", "context": ["a"], "tone": "dry"})
OURS = Row({"question": "2+2", "correct_answer": "4", "contexts": ["a"]}, "4")

case = partial(NativeCase, row=ROW, recognised=Contract("maxim"))
javascript = partial(case, language=Language.JAVASCRIPT)
refused = partial(case, status="failed", error="invalid_result")
HEAD = "def validate(input, output, expected_output, context, **kwargs):\n    return "

CASES = [
    case(id="bool", code=HEAD + "output == expected_output and kwargs['tone'] == 'dry'\n", native=[{"result": True}], score=1.0, passed=True),
    case(id="number, out of 0..1", code=HEAD + "len(context) * 7\n", native=[{"result": 7}], score=7),
    case(id="text", code=HEAD + "'brief'\n", native=[{"result": "brief"}], score=None, label="brief"),
    case(id="any order, other spellings", code="def validate(output, contextToEvaluate, expectedOutput):\n    return (output, contextToEvaluate) == (expectedOutput, ['a'])\n", score=1.0),
    case(id="a row in the host's form", row=OURS, code=HEAD + "(input, output, context) == ('2+2', expected_output, ['a'])\n", score=1.0),
    case(id="a missing variable", contract=Contract("maxim"), code="def validate(output, depth):\n    return 1\n", status="failed", error="missing_input"),
    case(id="an exception", code=HEAD + "1 / 0\n", status="failed", error="user_exception", line=2),
    *[refused(id=f"refuses {value}", code=HEAD + value + "\n") for value in ("None", "[1]", "{'score': 1}")],
    case(id="a helper with that name is not an evaluator", row=OURS, recognised=Contract.EVALUATE, code="def validate(output):\n    return 1\n\ndef evaluate(inputs, outputs, trace):\n    return validate(outputs) / 2\n", score=0.5),
    javascript(id="JavaScript: by name", code="function validate(output, expectedOutput) { return output === expectedOutput }", native=[{"result": True}], passed=True),
    javascript(id="JavaScript: one object", code="const validate = ({ input, output, context }) => input + output + context[0]", label="2+24a"),
    javascript(id="JavaScript: a promise", row=OURS, code="async function validate(input, output, expectedOutput, context) { return output === expectedOutput ? 0.5 : 0 }", score=0.5),
    javascript(id="JavaScript: nothing", code="function validate(output) { }", status="failed", error="invalid_result"),
    case(id="TypeScript", language=Language.TYPESCRIPT, code="export function validate(output: string, context: string[]): number { return context.length }", score=1),
]  # fmt: skip
