"""In real sandboxes, with `settings.entry: "*"`, all evaluators in a file become metrics of one result."""

import asyncio

from evaluator_host.engine.service import Service
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationResult, Status
from tests.conftest import ON_BUBBLEWRAP

pytestmark = ON_BUBBLEWRAP
ROW = Row({"question": "Capital of France?", "correct_answer": "Paris"}, "Paris")
PLAIN = """
def _norm(text): return clean(text).lower()
def clean(text): return text.strip()
def exact(inputs, outputs, trace):
    inputs["spoiled"] = True
    return _norm(outputs) == _norm(inputs["correct_answer"])
async def short(inputs, outputs, trace):
    return {"score": 0.5, "words": len(inputs), "reason": "few"}
def helper(text):
    return text
"""
JAVASCRIPT = """
const norm = (text) => text.toLowerCase()
export function exact(inputs, outputs, trace) { inputs.spoiled = true; return norm(outputs) === norm(inputs.correct_answer) }
export const short = async (inputs, outputs, trace) => ({ score: 0.5, words: Object.keys(inputs).length, reason: 'few' })
export const helper = (text) => text
"""
BROKEN = {
    Language.PYTHON: "def broken(inputs, outputs, trace):\n    raise ValueError('no')\n",
    Language.JAVASCRIPT: "export const broken = (inputs, outputs, trace) => { throw new TypeError('no') }\n",
}
SCORERS = """
from mlflow.genai.scorers import scorer
@scorer
def same(outputs, expectations):
    return outputs == expectations["expected_response"]
@scorer
def length(outputs):
    return len(outputs)
"""
LANGSMITH = """
def correct(run, example):
    return {"key": "correct", "score": int(run.outputs["output"] == example.outputs["output"]), "comment": "compared"}
def concise(outputs, reference_outputs):
    return len(outputs["output"]) < 3
"""


SEVERAL = """
def right(inputs, outputs, trace):
    return [{"name": "a", "score": 1, "reason": "same"}, {"name": "b", "score": 0.5}]
def tone(inputs, outputs, trace):
    return [{"name": "b", "score": 0.25}, {"name": "c", "score": 0}]
"""


async def every(
    service: Service,
    code: str,
    language: Language = Language.PYTHON,
    contract: Contract = Contract.AUTO,
    score: str = "",
) -> EvaluationResult:
    settings = EvaluatorSettings(entry="*", score_output=score or None)
    return await service.evaluate(Evaluator(code, language, contract, settings=settings), ROW)


def codes(result: EvaluationResult) -> list[str]:
    return sorted(note.code for note in result.warnings)


async def test_each_evaluator_is_a_metric(service: Service) -> None:
    both = ((PLAIN, Language.PYTHON), (JAVASCRIPT, Language.JAVASCRIPT))
    for result in await asyncio.gather(*(every(service, code, language) for code, language in both)):
        assert result.error is None
        assert (result.score, result.metrics) == (None, {"exact": 1.0, "short": 0.5, "short.words": 2})
        assert result.value["exact"]["passed"] is True
        assert result.value["short"] == {
            "status": "scored",
            "score": 0.5,
            "passed": None,
            "label": None,
            "reason": "few",
        }
        assert codes(result) == ["not_an_entry"]


async def test_an_evaluator_called_score_is_not_the_score_of_the_result(service: Service) -> None:
    code = "def score(output, expected):\n    return 1.0\n\ndef brevity(output, expected):\n    return 0.5\n"
    row = Row({"question": "Capital of France?", "expected": "Paris"}, "Paris")
    for settings, score in (({}, 0.75), ({"entry": "*"}, None), ({"score_output": "score"}, 1.0)):
        result = await service.evaluate(Evaluator(code, settings=EvaluatorSettings(**settings)), row)
        assert (result.score, result.metrics) == (score, {"score.score": 1.0, "brevity": 0.5})
    for name, number in (("score.score", 1.0), ("brevity", 0.5)):
        settings = EvaluatorSettings(score_output=name)
        assert (await service.evaluate(Evaluator(code, settings=settings), row)).score == number


async def test_one_that_fails_is_a_warning_and_all_that_fail_are_an_error(service: Service) -> None:
    for language, code in ((Language.PYTHON, PLAIN), (Language.JAVASCRIPT, JAVASCRIPT)):
        mixed, broken = await asyncio.gather(
            every(service, code + BROKEN[language], language), every(service, BROKEN[language], language)
        )
        assert mixed.status is Status.SCORED
        assert "entry_failed" in codes(mixed)
        assert mixed.value["broken"]["error"]["message"] == "no"
        assert broken.error is not None
        assert (broken.error.code, broken.error.message) == (ErrorCode.USER_EXCEPTION, "no")


async def test_warnings_about_a_value_say_whose_value_it_is(service: Service) -> None:
    code = """
def first(inputs, outputs, trace):
    return {"score": 1, "parts": {1: 0.25, "1": 0.5}}
def second(inputs, outputs, trace):
    return 0.5
"""
    result = await every(service, code)
    told = [note.message for note in result.warnings if note.code == "coerced"]
    assert len(told) == 2
    assert all(one.startswith("first: ") for one in told)
    assert "the last one counts" in told[1]


async def test_one_that_lacks_a_model_says_how_to_grant_it(service: Service) -> None:
    judge = "export const judge = (inputs, outputs, trace) => { throw new Error('Missing credentials. Please pass an `apiKey`, or set OPENAI_API_KEY') }\n"
    result = await every(service, JAVASCRIPT + judge, Language.JAVASCRIPT)
    told = [in_options(note.text) for note in result.warnings if note.code == "entry_failed"]
    assert len(told) == 1
    assert "name it with --model" in told[0]


async def test_the_score_is_the_one_that_is_named(service: Service) -> None:
    result = await every(service, PLAIN, score="short")
    assert (result.score, result.reason) == (0.5, "few")


async def test_a_name_that_no_evaluator_has_is_an_error(service: Service) -> None:
    only = "def quality(inputs, outputs, trace):\n    return [{'name': 'a', 'score': 1}, {'name': 'b', 'score': 0.5}]\n"
    unknown, inner, neither = await asyncio.gather(
        every(service, PLAIN, score="shrot"), every(service, only, score="b"), every(service, only, score="c")
    )
    assert unknown.error is not None
    assert (unknown.error.code, unknown.error.hint) == (
        ErrorCode.INVALID_RESULT,
        "name one of its scores: 'exact', 'short', 'short.words'; or leave score_output out",
    )
    assert inner.score == 0.5
    assert neither.error is not None


async def test_a_metric_or_the_only_score_with_a_name_may_be_the_score(service: Service) -> None:
    code = SEVERAL + "def count(inputs, outputs, trace):\n    return {'score': 0.5, 'words': 7}\n"
    shown, own, words, both, whole = await asyncio.gather(
        *(every(service, code, score=name) for name in ("right.a", "a", "count.words", "b", "right"))
    )
    assert (shown.score, shown.reason) == (own.score, own.reason) == (1, "same")
    assert (words.score, whole.score) == (7, 0.75)
    assert both.error is not None
    assert both.error.hint == "name one of: 'right.b', 'tone.b'"
    only = await every(service, SEVERAL.partition("def tone")[0], score="right.b")
    assert only.score == 0.5


async def test_evaluators_of_platforms(service: Service) -> None:
    mlflow, langsmith = await asyncio.gather(every(service, SCORERS), every(service, LANGSMITH))
    assert (mlflow.evaluator.contract, mlflow.metrics) == (Contract("mlflow"), {"same": 1.0, "length": 5})
    assert [one["name"] for one in mlflow.native] == ["same", "length"]
    assert (langsmith.evaluator.contract, langsmith.metrics) == (Contract("langsmith"), {"correct": 1, "concise": 0.0})
    assert langsmith.value["correct"]["reason"] == "compared"


async def test_several_contracts_are_refused_and_names_are_warned_about(service: Service) -> None:
    mixed = await every(service, PLAIN + "\ndef other(app_params, inputs, output, correct_answer):\n    return 1\n")
    assert mixed.error is not None
    assert mixed.error.code is ErrorCode.ENTRY_AMBIGUOUS
    code = "def exact(input, output, config):\n    return output == expected\n"
    assert "suspicious_parameters" in codes(await every(service, code))
    report = await service.check(Evaluator(PLAIN, settings=EvaluatorSettings(entry="*")))
    assert report.parameters == ("exact(inputs, outputs, trace)", "short(inputs, outputs, trace)")


async def test_one_of_several_is_not_the_score_when_the_others_fail(service: Service) -> None:
    broken = BROKEN[Language.PYTHON]
    failing = "def exact(inputs, outputs, trace):\n    return 0.4\n" + broken
    left, named, none = await asyncio.gather(
        every(service, failing), every(service, failing, score="broken"), every(service, failing, score="exact")
    )
    assert (left.status, left.score, left.metrics) == (Status.SCORED, None, {"exact": 0.4})
    assert (named.score, none.score) == (None, 0.4)


METRIC = """
class {name}(BaseMetric):
    def __init__(self{more}):
        self.threshold = 0.5
    async def a_measure(self, test_case):
        self.score = float(test_case.actual_output == {wanted!r})
        self.success = self.score >= self.threshold
    def is_successful(self):
        return self.success
"""


async def test_the_score_of_several_metrics_of_deepeval_is_their_mean(service: Service) -> None:
    parts = (("Same", "", "Paris"), ("Other", "", "Rome"), ("Given", ", level", "Paris"))
    code = "from deepeval.metrics import BaseMetric\n" + "".join(
        METRIC.format(name=name, more=more, wanted=wanted) for name, more, wanted in parts
    )
    found = await service.evaluate(Evaluator(code), ROW)
    assert (found.score, found.metrics["Same"], found.metrics["Other"], found.passed) == (0.5, 1.0, 0.0, False)
    assert {"several_entries", "not_an_entry"} <= {one.code for one in found.warnings}
    broken = code.replace("def __init__(self, level):", "def __init__(self):\n        raise ValueError('no key')")
    assert (await service.evaluate(Evaluator(broken), ROW)).score == 0.5
    named = await service.evaluate(Evaluator(code, settings=EvaluatorSettings(entry="Same")), ROW)
    assert named.score == 1.0
