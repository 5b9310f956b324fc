"""The host never calls a helper, a private function, or a function that the file's own list of evaluators leaves out."""

import asyncio

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from tests.conftest import ON_BUBBLEWRAP

pytestmark = ON_BUBBLEWRAP
ROW = Row({"question": "Capital of France?", "correct_answer": "Paris"}, "Paris")
TWO = "def exact(output, expected):\n    return 1.0\n\ndef near(output, expected):\n    return 0.5\n\n"
RUNS = "def correct(run, example):\n    return {'score': 1}\n\ndef short(run, example):\n    return {'score': 0.5}\n\n"
SCORER = "from mlflow.genai.scorers import scorer\nimport mlflow\n\n@scorer\ndef a(outputs):\n    return 1.0\n\n@scorer\ndef b(outputs):\n    return 0.5\n\n"

TASK = """
from inspect_ai import Task, task
from inspect_ai.scorer import Score, accuracy, scorer

@scorer(metrics=[accuracy()])
def first():
    async def score(state, target):
        return Score(value=0.5)
    return score

@scorer(metrics=[accuracy()])
def second():
    async def score(state, target):
        return Score(value=1)
    return score

@task
def demo():
    return Task(dataset=[], solver=[], scorer=first())
"""
METRICS = """
from deepeval.metrics import BaseMetric

class Shared(BaseMetric):
    threshold = 0.5
    value = 1.0
    async def a_measure(self, case):
        self.score = self.value
        return self.score

class Real(Shared):
    value = 0.5

class Other(BaseMetric):
    pass

metrics = [Real()]
"""
CHECKS = """
def a(output):
    return 0.2

def b(output):
    return 0.3

CHECKS = [a, b]

def every(output):
    return sum(one(output) for one in CHECKS)
"""

MEANT = {
    "an only function with an underscore": "def _exact(output, expected):\n    return 0.5\n",
    "public before private": TWO.replace("exact", "_exact"),
    "a helper that the other one calls": TWO.replace("0.5", "exact(output, expected) / 2"),
    "a helper of a helper": TWO.replace("0.5", "via(output) / 2") + "def via(text):\n    return exact(text, 1)\n",
    "a function that main calls": "def exact(output):\n    return 0.5\n\ndef main():\n    exact(1)\n",
    "a list": TWO + "evaluators = [near]\n",
    "a list of any name": TWO + "CHOSEN = (near,)\n",
    "a list below the guard": TWO + "if __name__ == '__main__':\n    run(scorers=[near])\n",
    "a list in a function with parameters": TWO + "def run(data):\n    return go(data, evaluators=[near])\n",
    "a list under a key": TWO + "config = {'scorers': {'n': near}}\n",
    "an argument": TWO + "if __name__ == '__main__':\n    run(metric=near)\n",
    "a list that the evaluator goes through": CHECKS,
    "langsmith: a list": RUNS + "if __name__ == '__main__':\n    client.evaluate(task, evaluators=[short])\n",
    "langsmith: a helper with a run": RUNS.replace("0.5", "1").replace("1}", "short(run, example)['score'] / 2}", 1),
    "a coroutine of the same": TWO.replace("def exact", "async def near_async"),
    "rewards: what a rubric adds": (
        "def a(completion):\n    return 0.2\n\ndef b(completion):\n    return a(completion) + 0.1\n\n"
        "def load_environment(data):\n    rubric.add_reward_func(a)\n    rubric.add_reward_func(b)\n"
    ),
    "langsmith: what a factory with options returns": (
        "def make(*, field='output', key='same'):\n    def same(outputs, reference_outputs):\n"
        "        return {'key': key, 'score': 0.5 if field in outputs else 0}\n    return same\n"
    ),
    "mlflow: a list": SCORER + "if __name__ == '__main__':\n    mlflow.genai.evaluate(data=[], scorers=[b])\n",
    "inspect: the scorer of the task": TASK,
    "deepeval: a list": METRICS,
    "honeyhive: beside a plain helper": (
        "def norm(text):\n    return text\n\ndef score(outputs, inputs, ground_truth):\n    return norm(0.5)\n"
    ),
    "a private helper of another platform's form": (
        "def _ok(event):\n    return 1\n\ndef score(output, expected):\n    return _ok(output) / 2\n"
    ),
    "a public one": (
        "def is_ok(event):\n    return 1\n\ndef reward(solution_str, ground_truth):\n    return is_ok(1) / 2\n"
    ),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", MEANT)
async def test_the_code_itself_says_which_function_is_meant(service: Service, case: str) -> None:
    result = await service.evaluate(Evaluator(MEANT[case]), ROW)
    assert (result.score, result.error) == (0.5, None)
    assert "several_entries" not in [one.code for one in result.warnings] or case.startswith("rewards")


PAIR = "const exact = ({ output, expected }) => 1\nconst near = ({ output, expected }) => 0.5\n"
JAVASCRIPT = {
    "the only member of module.exports": PAIR + "module.exports = { near }",
    "one with parameters of any name": "const near = (text, more) => 0.5\nmodule.exports = { near }",
    "a member of exports": "exports.near = (text, more) => 0.5",
    "an export": PAIR + "export { near }",
    "a member of the default export": PAIR + "export default { near }",
    "an anonymous default export": "export default ({ output, expected }) => 0.5",
    "an anonymous function": "export default async function ({ output, expected }) { return 0.5 }",
    "one that reads its row": "export default (args) => args.output === 'Paris' ? 0.5 : 0",
    "an only function with an underscore": "function _near(output, expected) { return 0.5 }",
    "public before private": PAIR.replace("exact", "_exact"),
    "a list": PAIR + "const scorers = [near]",
    "an exported list beside exports": PAIR.replace("const", "export const") + "export const evaluators = [near]",
    "a list of any name": PAIR + "const CHOSEN = [near]",
    "a list under a key": PAIR + "const config = { scores: [near] }",
    "a helper that the other one calls": PAIR.replace("0.5", "exact({ output }) / 2"),
    "a helper of a helper": PAIR.replace("0.5", "via(output) / 2") + "const via = (text) => exact({ output: text })",
    "the evaluator of an object": "export const accuracy = { name: 'a', evaluate: ({ output, expected }) => 0.5 }",
    "langsmith: a list": (
        "export const correct = ({ outputs, referenceOutputs }) => ({ key: 'c', score: 1 })\n"
        "export const near = ({ outputs, referenceOutputs }) => ({ key: 'n', score: 0.5 })\nconst evaluators = [near]"
    ),
}
TYPESCRIPT = {
    "a list": PAIR.replace("})", "}: any)") + "export const scorers: unknown[] = [near]",
    "an anonymous default export": "export default ({ output }: { output: string }): number => 0.5",
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("language", "code"),
    [
        *(pytest.param(Language.JAVASCRIPT, code, id=name) for name, code in JAVASCRIPT.items()),
        *(pytest.param(Language.TYPESCRIPT, code, id=f"TypeScript: {name}") for name, code in TYPESCRIPT.items()),
    ],
)
async def test_javascript_code_itself_says_which_function_is_meant(
    service: Service, language: Language, code: str
) -> None:
    result = await service.evaluate(Evaluator(code, language), ROW)
    assert (result.score, result.error) == (0.5, None)


async def test_of_rewards_only_the_listed_ones_count(service: Service) -> None:
    both = "def a(completions, **kwargs):\n    return [1.0 for _ in completions]\n\ndef b(completions):\n    return [0.5 for _ in completions]\n\n"
    every, listed = await asyncio.gather(
        service.evaluate(Evaluator(both), ROW), service.evaluate(Evaluator(f"{both}reward_funcs = [b]\n"), ROW)
    )
    assert (every.score, listed.score) == (1.5, 0.5)


async def test_where_it_is_not_clear_all_are_called_and_named_with_their_lines(service: Service) -> None:
    result = await service.evaluate(Evaluator(TWO), ROW)
    assert (result.score, result.metrics) == (0.75, {"exact": 1.0, "near": 0.5})
    [note] = [one for one in result.warnings if one.code == "several_entries"]
    assert note.message == (
        "the score is the mean of exact(output, expected) in line 1, near(output, expected) in line 4; to use one of them, name it in `settings.entry`"
    )
    asked = await service.evaluate(Evaluator(TWO, settings=EvaluatorSettings(entry="*")), ROW)
    assert (asked.score, asked.metrics) == (None, result.metrics)
    named = await service.evaluate(Evaluator(TWO, settings=EvaluatorSettings(entry="exact")), ROW)
    assert (named.score, named.evaluator.contract) == (1.0, Contract("function"))


async def test_javascript_calls_all_and_names_them_with_their_lines(service: Service) -> None:
    result = await service.evaluate(Evaluator(PAIR, Language.JAVASCRIPT), ROW)
    assert (result.score, result.metrics) == (0.75, {"exact": 1, "near": 0.5})
    [note] = [one for one in result.warnings if one.code == "several_entries"]
    assert "exact({ output, expected }) in line 1" in note.message
    assert "near({ output, expected }) in line 2" in note.message
    members = "module.exports = { a: (text, more) => 1, b: (text, more) => 0 }"
    report = await service.check(Evaluator(members, Language.JAVASCRIPT))
    assert report.problems[0].hint == "name the evaluator in `settings.entry`, for example a"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("returned", ["[a, b]", "(a, b)", "{'a': a, 'b': b}"])
@pytest.mark.parametrize("name", ["", "(name='other')"])
async def test_scorers_that_a_factory_makes_are_all_called(service: Service, returned: str, name: str) -> None:
    code = (
        "from mlflow.genai.scorers import scorer\n\ndef build_scorers():\n"
        "    @scorer(name='first')\n    def a(outputs):\n        return 0.5\n\n"
        f"    @scorer{name}\n    def b(outputs):\n        return 1.0\n\n    return {returned}\n"
    )
    result = await service.evaluate(Evaluator(code), ROW)
    assert (result.score, sorted(result.metrics.values())) == (0.75, [0.5, 1.0])
    told = {one.code: one.message for one in result.warnings}
    assert "the score is the mean of " in told["several_entries"]
