"""Cases about ways to write the evaluator's function in Python, and about evaluators that cannot be called."""

from evaluator_host.types.evaluator import Contract
from tests.contract.cases.case import failed, python, scored

HIT = {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}

CASES = [
    python("async", "async def evaluate(inputs, outputs, trace):\n    return 1.0", scored(1, contract="evaluate")),
    python("lambda", "evaluate = lambda i, o, t: float(o == i['correct_answer'])", scored(1), **HIT),
    python(
        "callable-object",
        """
        class Matcher:
            def __init__(self, column):
                self.column = column

            def __call__(self, inputs, outputs, trace):
                return outputs == inputs[self.column]

        evaluate = Matcher("correct_answer")
        """,
        scored(1.0, passed=True, contract="evaluate"),
        **HIT,
    ),
    python(
        "bound-method",
        """
        class Matcher:
            def score(self, inputs, outputs, trace):
                return 0.5

        evaluate = Matcher().score
        """,
        scored(0.5, contract="evaluate"),
    ),
    python(
        "factory",
        """
        def make(limit):
            def inner(inputs, outputs, trace):
                return len(outputs) <= limit
            return inner

        evaluate = make(5)
        """,
        scored(1.0, passed=True),
        **HIT,
    ),
    python(
        "partial",
        """
        from functools import partial

        def scorer(factor, inputs, outputs, trace):
            return factor

        evaluate = partial(scorer, 0.25)
        """,
        scored(0.25),
    ),
    python(
        "decorated",
        """
        import functools

        def logged(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                print("called with", len(args))
                return function(*args, **kwargs)
            return inner

        @logged
        def evaluate(inputs, outputs, trace):
            return 1.0
        """,
        scored(1, stdout="called with 3\n"),
    ),
    python("any-parameter-names", "def evaluate(a, output, app_trace):\n    return output", scored(0.5), outputs=0.5),
    python("default-parameter", "def evaluate(inputs, outputs, trace=None):\n    return 1", scored(1, contract="evaluate")),
    python("star-arguments", "def evaluate(*args):\n    return 1", failed("entry_ambiguous", "evaluate-v1")),
    python("star-arguments-declared", "def evaluate(*args):\n    return len(args) / 10", scored(0.3), contract=Contract.EVALUATE),
    python("annotated", "def evaluate(inputs: dict, outputs: str, trace: 'Trace') -> float:\n    return 1", scored(1)),
    python(
        "last-definition-wins",
        """
        def evaluate(inputs, outputs, trace):
            return 0.1

        def evaluate(inputs, outputs, trace):
            return 0.9
        """,
        scored(0.9),
    ),
    python(
        "main-guard-does-not-run",
        """
        def evaluate(inputs, outputs, trace):
            return 1.0

        if __name__ == "__main__":
            raise SystemExit("ran as a script")
        """,
        scored(1),
    ),
    python(
        "names-like-ours",
        """
        result, params, inputs, outputs, trace = 1, 2, 3, 4, 5

        def evaluate(i, o, t):
            return (result + params + inputs + outputs + trace) / 30
        """,
        scored(0.5),
    ),
    python(
        "printed-score-is-a-log",
        """
        def evaluate(inputs, outputs, trace):
            print('{"result": 0.99}')
            return 0.5
        """,
        scored(0.5, stdout='{"result": 0.99}\n'),
    ),
    python(
        "named-entry",
        """
        def first(inputs, outputs, trace):
            return 0.1

        def second(inputs, outputs, trace):
            return 0.2
        """,
        scored(0.2),
        contract=Contract.EVALUATE,
        entry="second",
    ),
    python(
        "data-class-at-module-level",
        """
        from dataclasses import dataclass

        @dataclass
        class Weights:
            exact: float = 0.5

        def evaluate(inputs, outputs, trace):
            return Weights().exact
        """,
        scored(0.5),
    ),
    python(
        "source-of-itself",
        "import inspect\n\ndef evaluate(inputs, outputs, trace):\n    return 'def evaluate' in inspect.getsource(evaluate)",
        scored(1.0, passed=True),
    ),
    python(
        "pre-bound-names-in-v1",
        """
        def evaluate(app_params, inputs, output, correct_answer):
            match = re.search(r"[0-9]+", json.dumps(output))
            return math.floor(float(match.group())) / 10
        """,
        scored(0.5, contract="evaluate-v1"),
        inputs={"correct_answer": ""},
        outputs={"n": 5},
    ),
    python(
        "own-names-beat-pre-bound",
        "json = 0.5\n\ndef evaluate(app_params, inputs, output, correct_answer):\n    return json",
        scored(0.5),
        inputs={"correct_answer": ""},
    ),
    python(
        "nothing-pre-bound-in-evaluate",
        "def evaluate(inputs, outputs, trace):\n    return json.loads('1')",
        failed("user_exception", "json", type="NameError", line=2),
    ),
    python("no-entry", "limit = 1", failed("entry_not_found", "evaluate")),
    python("columns-that-no-row-has", "def score(a, b, c):\n    return a + b + c", failed("missing_input", "`score` needs `a`")),
    python("entry-is-no-function", "evaluate = 5", failed("entry_not_found")),
    python("declared-main-without-main", "def evaluate(a, b, c):\n    return 1", failed("entry_not_found", "main"), contract=Contract.MAIN),
    python("two-parameters", "def evaluate(a, b):\n    return 1", failed("binding_error")),
    python("syntax-error", "def evaluate(inputs, outputs, trace):\n    return (1", failed("syntax_error", line=2)),
    python("load-error", "x = 1\ny = x / 0\n", failed("load_error", "division", type="ZeroDivisionError", line=2)),
    python(
        "user-exception",
        """
        def ratio(n):
            return 1 / n

        def evaluate(inputs, outputs, trace):
            return ratio(inputs["n"])
        """,
        failed("user_exception", "division by zero", type="ZeroDivisionError", line=2),
        inputs={"n": 0},
    ),
    python(
        "key-error",
        "def evaluate(inputs, outputs, trace):\n    return inputs['answer']",
        failed("user_exception", "answer", type="KeyError", line=2),
    ),
]  # fmt: skip
