"""The runner infers the right contract for a function, and calls the function as this contract
prescribes.
"""

from typing import Any

import pytest
from evaluator_runner import dialects
from evaluator_runner.failures import Failure

INFERRED = [
    ("def evaluate(inputs, outputs, trace): ...", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(a, b, c): ...", "evaluate", "function evaluate with 3 parameters"),
    ("async def evaluate(a, b, c): ...", "evaluate", "function evaluate with 3 parameters"),
    ("evaluate = lambda a, b, c: 1", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(a, b, c, d=None): ...", "evaluate", "function evaluate with 4 parameters"),
    ("def evaluate(a, b=1, c=2, d=3): ...", "evaluate", "function evaluate with 4 parameters"),
    ("def evaluate(a, b=None, c=None): ...", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(a, *rest): ...", "evaluate", "function evaluate with 2 parameters"),
    ("def evaluate(a, b, c, *, strict=False): ...", "evaluate", "function evaluate with 4 parameters"),
    ("def evaluate(a, b, c, /): ...", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(a, b, c, **more): ...", "evaluate", "function evaluate with 4 parameters"),
    ("def evaluate(a, b, c, d): ...", "evaluate-v1", "function evaluate with 4 parameters"),
    ("def evaluate(app_params, inputs, output, correct_answer): ...", "evaluate-v1", "function evaluate with 4 parameters"),
    ("def evaluate(app_params, inputs, output, correct_answer=None): ...", "evaluate-v1", "function evaluate with 4 parameters"),
    ("def evaluate(params, inputs, output, datapoint=None): ...", "evaluate-v1", "function evaluate with 4 parameters"),
    ("def main(completion, target): ...", "main", "function main with 2 parameters"),
    ("def main(): ...", "main", "function main with 0 parameters"),
    ("def main(**variables): ...", "main", "function main with 1 parameter"),
    ("def main(a, b, c): ...", "main", "function main with 3 parameters"),
    ("def evaluate(a, b, c): ...\ndef main(): ...", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(a, b): ...\ndef main(x): ...", "main", "function main with 1 parameter"),
    ("class S:\n def __call__(self, a, b, c): ...\nevaluate = S()", "evaluate", "function evaluate with 3 parameters"),
    ("class S:\n def run(self, a, b, c): ...\nevaluate = S().run", "evaluate", "function evaluate with 3 parameters"),
    ("import functools\ndef f(k, a, b, c): ...\nevaluate = functools.partial(f, 1)", "evaluate", "function evaluate with 3 parameters"),
    ("import functools\ndef d(f):\n @functools.wraps(f)\n def g(*a, **k): return f(*a, **k)\n return g\n@d\ndef evaluate(a, b, c): ...", "evaluate", "function evaluate with 3 parameters"),
    ("import functools\n@functools.lru_cache\ndef evaluate(a, b, c, d): ...", "evaluate-v1", "function evaluate with 4 parameters"),
    ("def evaluate(*, inputs, outputs, trace=None): ...", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(*, outputs, inputs): ...", "evaluate", "function evaluate with 2 parameters"),
    ("def evaluate(inputs, *, outputs, trace): ...", "evaluate", "function evaluate with 3 parameters"),
    ("def evaluate(*, trace, **rest): ...", "evaluate", "function evaluate with 2 parameters"),
    ("def evaluate(*, app_params, inputs, output, correct_answer): ...", "evaluate-v1", "function evaluate with 4 parameters"),
    ("class S:\n def run(self, *, outputs, strict=True): ...\nevaluate = S().run", "evaluate", "function evaluate with 2 parameters"),
    ("def evaluate(a): ...\ndef evaluate(a, b, c): ...", "evaluate", "function evaluate with 3 parameters"),
]  # fmt: skip

REFUSED = [
    ("def evaluate(a, b): ...", "binding_error", "takes 2 parameters (a, b), but it is called with 3 arguments: inputs, outputs, trace"),
    ("def evaluate(): ...", "binding_error", "takes no parameters"),
    ("def evaluate(a, b, c, d, e): ...", "binding_error", "takes 5 parameters"),
    ("def evaluate(a, b, c, *, strict): ...", "binding_error", "takes 4 parameters"),
    ("def evaluate(*, outputs, strict): ...", "binding_error", "takes 2 parameters (outputs, strict)"),
    ("def evaluate(a, *, trace): ...", "binding_error", "takes 2 parameters"),
    ("def evaluate(*args): ...", "entry_ambiguous", "evaluate-v1"),
    ("def evaluate(*args, **kwargs): ...\ndef main(): ...", "entry_ambiguous", "evaluate (inputs, outputs, trace)"),
    ("def evalute(a, b, c): ...", "entry_not_found", "no function named `evaluate` or `main`; it defines evalute"),
    ("evaluate = 5", "entry_not_found", "`evaluate` is of type int, not a function"),
    ("class evaluate:\n pass", "entry_not_found", "`evaluate` is a class, not a function"),
    ("class Scorer:\n def evaluate(self): ...", "entry_not_found", "it defines only Scorer"),
    ("x = 1", "entry_not_found", "no function named `evaluate` or `main`"),
]  # fmt: skip


class Source:
    def __init__(self, code: str) -> None:
        self._code = code

    def get_source(self, _name: str) -> str:
        return self._code


def run(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "evaluator", "__loader__": Source(code)}
    exec(code, namespace)
    return namespace


@pytest.mark.parametrize(("code", "contract", "reason"), INFERRED)
def test_contract_is_inferred(code: str, contract: str, reason: str) -> None:
    found = dialects.find(run(code), contract="auto", name=None)
    assert (found.contract, found.source, found.reason) == (contract, "inferred", reason)


@pytest.mark.parametrize(("code", "error", "words"), REFUSED)
def test_code_without_a_callable_entry_is_refused(code: str, error: str, words: str) -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract="auto", name=None)
    assert caught.value.code == error
    assert words in caught.value.message
    assert caught.value.hint


REWARDS = """
import re
def answer_of(text): return re.sub(r"\\s", "", text)
class Rewards:
    def score_answer(self, completion, wanted): return float(answer_of(completion) == wanted)
    def score_form(self, completion): return 0.5
    def score_all(self, completion, wanted, weight=1): return self.score_answer(completion, wanted) + self.score_form(completion)
"""


@pytest.mark.parametrize(
    ("code", "message", "line"),
    [
        (
            REWARDS,
            "it defines Rewards, and functions for it",
            "def evaluate(inputs, outputs, trace): return Rewards().score_all(outputs, inputs['wanted'])",
        ),
        (
            "import typing\nclass Scorer(typing.Protocol):\n def score(self, a, b): ...\nclass Exact:\n def score(self, context, response): ...",
            "it defines only Scorer, Exact",
            "def evaluate(inputs, outputs, trace): return Exact().score(inputs['context'], outputs)",
        ),
        ("class Exact:\n def evaluate(self, a, b, c): ...", "it defines only Exact", "evaluate = Exact().evaluate"),
        (
            "class Problem:\n line = 0\nclass Checker:\n def all_found(self, files): ...\n def check(self, code, level): ...\n def check_files(self, files): return [self.check(one) for one in files]",
            "it defines only Problem, Checker",
            "def evaluate(inputs, outputs, trace): return Checker().check(outputs, inputs['level'])",
        ),
        (
            "class Judge:\n async def evaluate(self, query, response, context): ...",
            "it defines only Judge",
            "def evaluate(inputs, outputs, trace): return Judge().evaluate(inputs['query'], outputs, inputs['context'])",
        ),
        (
            "class Exact:\n def __call__(self, inputs, outputs): ...",
            "it defines only Exact",
            "def evaluate(inputs, outputs, trace): return Exact()(inputs, outputs)",
        ),
        (
            "class Near:\n def __call__(self, response, strict=False, ground_truth=None): ...",
            "it defines only Near",
            "def evaluate(inputs, outputs, trace): return Near()(outputs, ground_truth=inputs['ground_truth'])",
        ),
        (
            "class Adapter:\n def run(self, target, metric): ...",
            "it defines only Adapter",
            "def evaluate(inputs, outputs, trace): return Adapter().run(outputs, inputs['metric'])",
        ),
    ],
)
def test_the_line_that_a_class_lacks_calls_the_method_that_scores(code: str, message: str, line: str) -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract="auto", name=None)
    assert message in caught.value.message
    assert caught.value.hint == f"a class is not called: add `{line}` as the last line"
    found = dialects.find(run(f"{code}\n{line}"), contract="auto", name=None)
    assert (found.name, found.contract) == ("evaluate", "evaluate")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            "class Short:\n def __init__(self, limit, more=1): ...\n def evaluate(self, text): ...",
            "def evaluate(inputs, outputs, trace): return Short(limit=…).evaluate(outputs)` as the last line",
        ),
        (
            "class Part:\n line = 0\nclass Kind:\n def get_all(self, given): ...",
            (
                "def evaluate(inputs, outputs, trace): return Kind().METHOD(outputs)` as the last line, with the method that "
                "scores as METHOD"
            ),
        ),
    ],
)
def test_the_line_that_a_class_lacks_names_what_the_author_has_to_add(code: str, line: str) -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract="auto", name=None)
    assert caught.value.hint == f"a class is not called: add `{line}"


@pytest.mark.parametrize(("takes", "given"), [("run, example=None", "run, example"), ("run", "run")])
def test_a_run_evaluator_is_called_by_the_line_in_the_hint(takes: str, given: str) -> None:
    code = f"def part(found): ...\ndef more(found): ...\nclass Kind:\n def evaluate_run(self, {takes}): ..."
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract="auto", name=None)
    line = f"def evaluate(run, example): return Kind().evaluate_run({given})"
    assert caught.value.hint == f"a RunEvaluator is not called: add `{line}` as the last line"
    assert dialects.find(run(f"{code}\n{line}"), contract="langsmith", name=None).name == "evaluate"


@pytest.mark.parametrize(
    ("code", "contract", "name", "expected"),
    [
        ("def evaluate(*args): ...", "evaluate", None, "evaluate"),
        ("def evaluate(*args): ...", "evaluate-v1", None, "evaluate-v1"),
        ("def evaluate(a, b, c, d=1): ...", "evaluate-v1", None, "evaluate-v1"),
        ("def main(a): ...\ndef evaluate(a, b, c): ...", "main", None, "main"),
        ("def score(a, b, c): ...", "evaluate", "score", "evaluate"),
        ("def score(a, b): ...", "main", "score", "main"),
        ("def score(a, b, c): ...", "auto", "score", "evaluate"),
        ("def score(a, b, c, d): ...", "auto", "score", "evaluate-v1"),
        ("def score(completion, target): ...", "auto", "score", "main"),
    ],
)
def test_declared_contract_and_named_entry(code: str, contract: str, name: str | None, expected: str) -> None:
    found = dialects.find(run(code), contract=contract, name=name)
    assert found.contract == expected
    assert found.source == ("inferred" if contract == "auto" else "declared")


@pytest.mark.parametrize(
    ("code", "contract", "name", "error"),
    [
        ("def evaluate(a, b): ...", "evaluate", None, "binding_error"),
        ("def evaluate(a, b, c): ...", "evaluate-v1", None, "binding_error"),
        ("def evaluate(a, b, c): ...", "main", None, "entry_not_found"),
        ("def evaluate(a, b, c): ...", "auto", "other", "entry_not_found"),
    ],
)
def test_declaration_that_does_not_fit(code: str, contract: str, name: str | None, error: str) -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract=contract, name=name)
    assert caught.value.code == error


def test_misspelt_name_is_suggested() -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run("def Evaluate(a, b, c): ..."), contract="auto", name=None)
    assert "did you mean `Evaluate`" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("code", "shown", "example"),
    [
        ("def load(a): ...\ndef check_sql(a): ...\ndef _norm(a): ...", "check_sql, load, _norm", "check_sql"),
        ("def eval_context(a): ...\ndef eval_retry(a): ...", "eval_context, eval_retry", "eval_context"),
        ("def process_docs(a): ...\ndef process_results(a): ...", "process_results, process_docs", "process_results"),
        ("def read(a): ...\ndef score_file(results_path): ...\ndef c(b): read(1)", "score_file, read, c", "score_file"),
    ],
)
def test_functions_that_may_score_are_shown_first(code: str, shown: str, example: str) -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract="auto", name=None)
    assert caught.value.message.endswith(f"it defines {shown}")
    assert f"name the evaluator in `settings.entry`, for example {example}, or " in str(caught.value.hint)


def test_the_only_function_that_scores_a_file_is_not_one_of_rows() -> None:
    code = "def score_all(results_path, output_path=None):\n    return 1"
    with pytest.raises(Failure) as caught:
        dialects.find(run(code), contract="auto", name=None)
    assert (caught.value.code, "score_all" in str(caught.value.hint)) == ("entry_not_found", True)


def test_no_class_is_suggested_that_others_only_derive_from() -> None:
    base = "from abc import ABC, abstractmethod\nclass Scorer(ABC):\n    @abstractmethod\n    def score(self, a): ...\n"
    with pytest.raises(Failure) as caught:
        dialects.find(run(f"{base}class Exact(Scorer):\n    def score(self, a): ...\n"), contract="auto", name=None)
    assert "return Exact().score(outputs)`" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("code", "parameters", "called"),
    [
        (
            "def evaluate(*, inputs, outputs, trace=None): return inputs, outputs, trace",
            "inputs outputs trace",
            (1, 2, 3),
        ),
        ("def evaluate(*, trace, outputs, inputs): return inputs, outputs, trace", "inputs outputs trace", (1, 2, 3)),
        ("def evaluate(*, outputs, inputs): return inputs, outputs", "inputs outputs", (1, 2)),
        ("def evaluate(a, *, outputs, trace): return a, outputs, trace", "a outputs trace", (1, 2, 3)),
        ("def evaluate(a, b, *, inputs, strict=7): return a, b, inputs, strict", "inputs a b strict", (2, 3, 1, 7)),
        ("def evaluate(*, outputs, **rest): return outputs, rest", "_ outputs **rest", (2, {"inputs": 1, "trace": 3})),
        ("def evaluate(*rest, trace): return rest, trace", "_ _ trace *rest", ((1, 2), 3)),
        ("def evaluate(*, trace): return trace", "_ _ trace", 3),
    ],
)
def test_keyword_only_parameters_are_passed_by_name(code: str, parameters: str, called: Any) -> None:
    found = dialects.find(run(code), contract="evaluate", name=None)
    assert found.parameters == parameters.split()
    assert found.bind is not None
    args, named = found.bind([1, 2, 3])
    assert found.call(*args, **named) == called


@pytest.mark.parametrize(
    ("contract", "code", "row", "called"),
    [
        ("openai-grader", "def grade(*, sample, item): return sample, item", [{"sample": 1, "item": 2}], (1, 2)),
        ("promptfoo", "def get_assert(*, output, context): return output, context", [1, 2], (1, 2)),
        ("honeyhive", "def f(*, inputs, outputs): return inputs, outputs", [{"outputs": 1, "inputs": {"a": 2}}], ({"a": 2}, 1)),
        ("honeyhive", "def f(outputs, *, inputs, ground_truth=0): return outputs, inputs, ground_truth",
         [{"outputs": 1, "inputs": {"a": 2}, "ground_truth": 3}], (1, {"a": 2}, 3)),
        ("coze", "def exec_evaluation(*, turn): return turn", [{"a": 1}], {"a": 1}),
        ("evaluate-v1", "def evaluate(*, output, correct_answer): return output, correct_answer", [{}, {}, 1, 2], (1, 2)),
    ],
)  # fmt: skip
def test_other_contracts_pass_them_by_name_too(contract: str, code: str, row: list[Any], called: Any) -> None:
    found = dialects.find(run(code), contract=contract, name=None)
    assert found.bind is not None
    args, named = found.bind(row)
    assert found.call(*args, **named) == called


def test_a_keyword_only_parameter_that_nothing_has_is_named() -> None:
    with pytest.raises(Failure) as caught:
        dialects.find(run("def evaluate(*, outputs, strict): ..."), contract="auto", name=None)
    assert str(caught.value.hint).startswith("`strict` is keyword-only")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("def main(completion, target): ...", True),
        ("def main(*, completion): ...", True),
        ("def main(): ...", False),
        ("def main(argv=None): ...", False),
        ("main = 5", False),
        ("from os.path import join as main", False),
    ],
)
def test_a_main_beside_the_scorer_is_reported(more: str, said: bool) -> None:
    namespace = run(f"def evaluate(inputs, outputs, trace): ...\n{more}")
    found = dialects.find(namespace, contract="auto", name=None)
    assert [note["code"] for note in found.notes] == (["several_entries"] if said else [])
    assert not dialects.find(namespace, contract="auto", name="evaluate").notes
