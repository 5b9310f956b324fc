"""Functions with any name. The names of a function's parameters decide which values it gets."""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from tests.dialects.cases import NativeCase

ROW = Row({"question": "2+2", "correct_answer": "4", "context": ["sums"]}, "4")
COLUMNS = Row(variables={"query": "2+2", "prediction": "4", "gold": "4"})
WITHOUT = Row({"question": "2+2"}, "4")

case = partial(NativeCase, row=ROW, recognised=Contract.FUNCTION)
javascript = partial(case, language=Language.JAVASCRIPT)
typescript = partial(case, language=Language.TYPESCRIPT, row=WITHOUT)
other = partial(NativeCase, row=ROW)


def right(parameters: str, expression: str, name: str = "score", **more: Any) -> NativeCase:
    """Return a case with a function that returns this expression, which is true if each parameter has the right value."""
    return case(
        id=f"{name}({parameters})",
        code=f"def {name}({parameters}):\n    return {expression}\n",
        score=1.0,
        passed=True,
        **more,
    )


def of_lists(parameters: str, score: float = 1.0, *, row: Row = ROW) -> NativeCase:
    """Return a case with a function of two lists, which counts the pairs that are equal."""
    code = f"def accuracy({parameters}):\n    return sum(a == b for a, b in zip({parameters})) / len(list(zip({parameters})))\n"
    return case(id=f"lists: {parameters} of {row}", code=code, row=row, score=score, warnings=frozenset({"coerced"}))


ALIKE = Row({"correct_answer": "Paris"}, "Parma")
CASES = [
    of_lists("y_true, y_pred"),
    of_lists("y_true, y_pred", 0.0, row=ALIKE),
    of_lists("predictions, references", 0.0, row=ALIKE),
    of_lists("preds, gts", 0.0, row=ALIKE),
    of_lists("hypotheses, targets", 0.0, row=ALIKE),
    of_lists("preds, labels", 0.5, row=Row({"correct_answer": ["a", "b"]}, ["a", "c"])),
    of_lists("predictions, references", 0.0, row=Row({"correct_answer": ["Paris"]}, "Paris")),
    case(id="letters of two texts", row=ALIKE, code="def score(output, expected):\n    return sum(a == b for a, b in zip(output, expected)) / 5\n", score=0.6),
    case(id="y_true that is one value", code="def score(y_true, y_pred):\n    return y_true.strip() == y_pred.strip()\n", score=1.0),
    case(id="a list of scores beside the score of one", code="def score(output, expected):\n    return output == expected\ndef scores(predictions, references):\n    return [score(a, b) for a, b in zip(predictions, references)]\n", score=1.0),
    case(id="functions that return what the chosen one returns", row=Row(variables={"plan": {"shots": 2}, "expected": {"shots": 3}, "result": {"done": 1}}), code="def match(plan: dict, expected: dict) -> tuple[float, dict]:\n    return float(plan == expected), {}\ndef completion(result: dict) -> tuple[float, dict]:\n    return float(result['done']), {}\ndef mean(values: list) -> float:\n    return sum(values) / len(values)\n", score=1.0, warnings=frozenset({"entry_left_out"})),
    case(id="a function that makes one of several classes", row=Row(variables={"query": "2+2", "final_answer": "4"}), recognised=None, code="class Short:\n    def compute_reward(self, query, final_answer):\n        return 1.0\nclass Long(Short):\n    def compute_reward(self, query, final_answer):\n        return 0.5\ndef create_reward_function(config: dict) -> Short:\n    return Long() if config.get('long') else Short()\n", status="failed", error="entry_not_found", message="Long().compute_reward(inputs['query'], outputs)"),
    right("output, expected", "output == expected"),
    right("prediction, ground_truth", "prediction == ground_truth == '4'", "exact_match"),
    right("expected, actual", "actual == expected == '4'", "compare"),
    right("response: str, reference: str, /", "response == reference"),
    right("*, input, output, expected_output, **kwargs", "output == expected_output and input == {'question': '2+2', 'context': ['sums']} and not kwargs"),
    right("question, answer, expected", "(question, answer) == ('2+2', expected)", "grade"),
    right("response, answer", "response == answer", "grade_answer"),
    right("query, response, context, threshold=0.5", "(query, response, context) == ('2+2', '4', ['sums']) and threshold == 0.5", "faithful"),
    right("output, metadata, trace", "metadata == {} and trace is None"),
    right("input, output, expected", "output == expected", "evaluate"),
    right("output, expected", "output == expected", "evaluate"),
    right("response", "response == '4'", "evaluate"),
    right("output, input, trace", "output == '4' and input['question'] == '2+2'", "evaluate"),
    right("question, answer, context", "context == ['sums']", "evaluate"),
    right("input, output, expected, metadata", "output == expected", "evaluate"),
    right("inputs, output, trace=None, reference=''", "output == reference", "evaluate"),
    right("output, expected", "output == expected", "judged", settings=EvaluatorSettings(entry="judged")),
    right("output, expected", "output == expected", "grade"),
    right("query, prediction, gold", "(query, prediction) == ('2+2', gold)", row=COLUMNS),
    right("prompt_text='x', output=None, target=None", "output == target == '4'", row=COLUMNS),
    right("output, expected=None", "expected is None", row=WITHOUT),
    right("output, label", "label == 'kind'", row=Row({"label": "kind", "correct_answer": "4"}, "4")),
    right("output, expected", "expected == '5'", "referenced", row=Row({"reference_answer": "5"}, "4")),
    right("completion_text, gold", "completion_text == gold == '4'"),
    right("model_output, ground_truth_answer", "ground_truth_answer == '4'"),
    right("pred, target", "pred.answer == target.answer", row=Row({"correct_answer": {"answer": 1}}, {"answer": 1})),
    right("output, target", "isinstance({}, type(target)) and isinstance(target, dict) and type(target) == type({}) == type(output) and type({}) in (type(target), list)", "compare_types", row=Row({"correct_answer": {"a": 1}}, {"a": 1})),
    right("output, target", "not isinstance([], type(target)) and type(target) != list and type(target) != type([]) and not issubclass(list, type(target))", "other_types", row=Row({"correct_answer": {"a": 1}}, {"a": 1})),
    right("output, target", "__import__('copy').deepcopy([target])[0].a.b == __import__('pickle').loads(__import__('pickle').dumps(target)).a.b == {**target}['a'].b == 1", "copies", row=Row({"correct_answer": {"a": {"b": 1}}}, "4")),
    right("input, response", "response == input['correct_answer']", "read_from_inputs"),
    *(right(f"{whole}, output", f"{whole}['correct_answer'] == output == '4' and 'outputs' not in {whole}", f"of_{whole}") for whole in ("row", "example", "sample", "item", "record")),
    right("example, pred, trace=None", "example.question == '2+2' and example.correct_answer == pred and getattr(example, 'gone', None) is trace is None", "answer_metric"),
    right("row", "row['outputs'] == row['output'] == row['correct_answer'] == '4'", "row_score"),
    right("sample, output", "sample == 'a part'", "of_column", row=Row({"sample": "a part"}, "4")),
    right("expected, observed", "(expected, observed) == ('4', '4')", "evaluate", warnings=frozenset({"coerced"})),
    case(id="two parameters of unknown names, of which one is a column", row=Row({"gt_boxes": [2]}, [1]), code="def box_score(boxes, gt_boxes):\n    return boxes == gt_boxes\n", status="failed", error="missing_input", message="`boxes`"),
    right("essay", "essay == '4'", "essay_score", warnings=frozenset({"coerced"})),
    right("sample, expected", "sample == expected == '4'", "exact_match_score", warnings=frozenset({"coerced"})),
    case(id="a function beside a class", code="def accuracy(output, expected):\n    return 0.25\n\nclass Judge:\n    def score(self, output, expected):\n        return 1.0\n", recognised=None, status="failed", error="entry_not_found"),
    case(id="a method that uses a method of the same name elsewhere", code="class Both:\n    def __init__(self):\n        self.other = None\n    def score(self, output):\n        return 1.0 if self.other is None else self.other.score(output)\n    def score_batch(self, outputs, expected):\n        return 0.75\n", score=1.0),
    case(id="an overall score beside its parts", code="def score(output):\n    return {'overall': 0.75, 'parts': []}\n", score=0.75),
    case(id="an overall score beside a total score", code="def score(output):\n    return {'overall': 0.9, 'total_score': 5}\n", score=5),
    case(id="names that begin with pred and gold", row=Row(variables={"gold_sql": "a", "pred_sql": "a"}), code="def compute_ex(gold_sql, pred_sql):\n    return gold_sql == pred_sql\n\ndef summary(results):\n    return len(results)\n", score=1.0),
    case(id="a function that makes checks", code="def contains(text):\n    def check(output):\n        return text in output\n    return check\n\ndef exact(output, expected):\n    return output == expected\n", score=1.0),
    case(id="a function that makes the graders", recognised=None, status="failed", error="entry_not_found", message="add `def evaluate(inputs, outputs, trace): return Hits().grade(outputs, inputs['sought'], inputs['calls'])`", code="class Hits:\n    def grade(self, found, sought, calls):\n        return len(found)\n\nclass Quality:\n    def grade(self, answer, question):\n        return 1\n\ndef get_graders():\n    return {'hits': Hits(), 'quality': Quality()}\n"),
    case(id="a key that says that the model answered", code="def check(output):\n    return {'ok': True, 'overall_score': 0.25}\n", score=0.25),
    case(id="a decorator that reads what the function does not", code="import functools\n\ndef counted(function):\n    @functools.wraps(function)\n    def inner(**given):\n        return function(**given) if len(given['words']) else 1\n    return inner\n\n@counted\ndef score(output, words):\n    return output == '4'\n", status="failed", error="missing_input", message="`words`"),
    case(id="a decorator with a parameter of its own", code="def extended(function):\n    def inner(output, extra):\n        return function(output)\n    return inner\n\n@extended\ndef score(output):\n    return output == '4'\n", status="failed", error="missing_input", message="`extra`"),
    case(id="a column with nearly the name of the only parameter", row=Row({"policy": "p", "question": "q"}, "4"), code="def policy_score(policy_text):\n    return len(policy_text)\n", status="failed", error="missing_input", message="`policy_text`"),
    right("output, keywords, limit", "output == '4'", "unread"),
    case(id="the ground truth under another key", settings=EvaluatorSettings(correct_answer_key="gold"), row=Row({"gold": "4"}, "4"), code="def score(output, expected):\n    return output == expected\n", score=1.0),
    case(id="several, one of a column that the row lacks", row=COLUMNS, code="def a(prediction):\n    return 0.5\n\ndef b(prediction, gone):\n    return len(gone)\n", score=0.5, metrics={"a": 0.5}, warnings=frozenset({"several_entries", "entry_failed"})),
    case(id="several, one of a column that the row has", row=Row(variables={"output": "4", "limit": 1}), code="def a(output):\n    return 0.5\n\ndef b(output, limit):\n    return limit\n", score=0.75),
    case(id="the only function, named as one that scores", row=Row(variables={"success": 1, "questions": 2}), code="def helper(n):\n    return 0.25 * n\n\ndef compute_reward(success: float, questions: float) -> float:\n    return success - helper(questions)\n\ndef main():\n    import sys\n    sys.exit(2)\n\nif __name__ == '__main__':\n    main()\n", score=0.5),
    case(id="the only function, without its columns", code="def compute_reward(success, steps):\n    return success / steps\n", status="failed", error="missing_input", message="`compute_reward` needs `success`"),
    case(id="several that may be the only one", row=Row(variables={"a": 1}), code="def plan_score(a):\n    return 1\n\ndef report_score(a):\n    return 0\n", recognised=None, status="failed", error="entry_not_found", message="plan_score"),
    case(id="the loop over a list of them", code="def a(output, expected):\n    return output == expected\n\ndef b(output):\n    return 0.5\n\nALL = (a, b)\n\ndef run(output, expected) -> list:\n    return [one(output) for one in ALL]\n", score=0.75),
    case(id="one that gives a list, beside another", code="def parsed(answer):\n    return [one for one in answer]\n\ndef exact(answer):\n    return answer == '4'\n", score=1.0),
    case(id="a function that takes the answer out of a text, beside those that judge it", row=Row({"ground_truth": "4"}, "so 4"), code="import re\n\ndef extract_number(text: str, last: bool = True):\n    return float(re.findall('[0-9]', text)[-1])\n\ndef normalize_text(text):\n    return text.strip()\n\ndef grade_answer(given_answer: str, ground_truth: str) -> bool:\n    return given_answer.endswith(ground_truth)\n\ndef said(student_answer, ground_truth):\n    return ground_truth in student_answer\n", score=1.0, passed=True, metrics={"grade_answer": 1.0, "said": 1.0}),
    case(id="a comparison of answers beside the reward of a whole output", row=Row({"gold": "4"}, "so 4"), code="def is_equal(given_answer, ground_truth):\n    return given_answer == ground_truth\n\ndef extract_answer(text):\n    return text\n\ndef reward_fn(model_response, gold):\n    return 0.25 if model_response.endswith(gold) else 0.0\n", score=0.25, metrics={"score": 0.25}),
    case(id="only a function that takes the answer out of a text", code="def extract_number(answer):\n    return int(answer) / 8\n", score=0.5),
    case(id="functions that extract, of an output and the truth", code="def extract_and_compare(output, expected):\n    return output == expected\n\ndef half(output):\n    return 0.5\n", score=0.75),
    case(id="a list of evaluators in which one extracts", code="def extract_number(text):\n    return int(text) / 8\n\ndef exact(output):\n    return output == '4'\n\nEVALUATORS = [extract_number, exact]\n", score=0.75),
    right("student_answer, answer_key", "student_answer == '4' and answer_key == 'b'", "grade_exam", row=Row({"answer_key": "b"}, "4")),
    right("submitted_answer, correct_answer", "submitted_answer == correct_answer"),
    case(id="a metric of DSPy beside the program that it judges, and a main", row=Row({"text": "great", "wanted": "positive"}, {"mood": "negative"}), code="import dspy\n\nclass Mood(dspy.Signature):\n    text: str = dspy.InputField()\n    mood: str = dspy.OutputField()\n\nclass Program(dspy.Module):\n    def __init__(self):\n        self.predict = dspy.Predict(Mood)\n\ndef mood_metric(example, pred, trace=None) -> float:\n    return 0.25 if pred.mood != example.wanted else 1.0\n\ndef main():\n    dspy.Evaluate(devset=[], metric=mood_metric)(Program())\n\nif __name__ == '__main__':\n    main()\n", score=0.25),
    case(id="a function beside a class of another platform", code="import other\n\nclass Judge(other.Scorer):\n    pass\n\ndef exact(output, expected):\n    return 1\n", recognised=None, status="failed", error="entry_not_found"),
    case(id="all lack a column", row=COLUMNS, code="def a(prediction, assertions):\n    return len(assertions)\n\ndef b(prediction, assertions):\n    return 1 - len(assertions)\n", status="failed", error="missing_input", message="add the column to the row"),
    case(id="asyncio.run in one of several", code="import asyncio\n\nasync def ask():\n    return 0.5\n\ndef a(output):\n    return asyncio.run(ask())\n\ndef b(output):\n    return 1\n", score=0.75),
    case(id="static methods of a class", recognised=None, status="failed", error="entry_not_found", message="`evaluate = Rewards.same`", code="class Rewards:\n    @staticmethod\n    def same(output, expected):\n        return output == expected\n"),
    case(id="classes beside a helper", recognised=None, status="failed", error="entry_not_found", message="`def evaluate(inputs, outputs, trace): return Same().evaluate(outputs)`", code="class Same:\n    def evaluate(self, context):\n        return context.output == '4'\n\ndef name(one):\n    return one\n"),
    case(id="functions of no known parameters", recognised=None, status="failed", error="entry_not_found", message="for example total,", code="def part(rows):\n    return len(rows)\n\ndef total(rows, columns):\n    return part(rows)\n\ndef other(rows, n):\n    return 1\n"),
    case(id="the only method of a class", code="class Exact:\n    def __init__(self, wanted='4'):\n        self.wanted = wanted\n    def _norm(self, text):\n        return text.strip()\n    def score_of_words(self, output):\n        return 0.5\n    def score(self, expected, generated):\n        return self._norm(generated) == expected == self.wanted\n\ndef test_exact():\n    assert Exact().score('a', 'a')\n\nif __name__ == '__main__':\n    test_exact()\n", score=1.0, passed=True),
    case(id="a class of a row and an output", code="class Reward:\n    def words(self, text):\n        return text.split()\n    def reward(self, sample, model_output):\n        return 0.25 if self.words(model_output) == [sample['correct_answer']] else 0.0\n", score=0.25),
    case(id="a class with settings", settings=EvaluatorSettings(config={"limit": 2}), code="class Short:\n    def __init__(self, limit):\n        self.limit = limit\n    def evaluate(self, response):\n        return len(response) < self.limit\n", score=1.0),
    case(id="a class that needs an argument", recognised=None, status="failed", error="load_error", message="objects of Short need limit", code="class Short:\n    def __init__(self, limit):\n        self.limit = limit\n    def evaluate(self, response):\n        return len(response) < self.limit\n"),
    case(id="a class that a function uses", code="class Exact:\n    def evaluate(self, text, other):\n        return text == other\n\ndef compared(output, expected):\n    return Exact().evaluate(output, expected)\n", score=1.0),
    case(id="two classes", recognised=None, status="failed", error="entry_not_found", message="it defines only", code="class Exact:\n    def score(self, output, expected):\n        return output == expected\n\nclass Short:\n    def score(self, output):\n        return len(output) < 5\n"),
    case(id="a verdict and reasons", code="def check(output):\n    return False, ['too short', 'too plain']\n", score=0.0, passed=False, reason="too short; too plain"),
    case(id="a verdict without reasons", code="def check(output):\n    return True, []\n", score=1.0, passed=True, reason=None),
    case(id="a verdict and objects that say why", code="def check(output):\n    return False, [{'item': 'refund', 'found': False}]\n", score=0.0, passed=False, reason='[{"item": "refund", "found": false}]'),
    case(id="a verdict and no reason", code="def check(output):\n    return True, None\n", score=1.0, passed=True, reason=None),
    case(id="a score and no reason", code="def check(output):\n    return 0.25, None\n", score=0.25, reason=None, warnings=frozenset({"coerced"})),
    *(
        case(id=f"tuples of numbers: {value}", code=f"def check(output):\n    return {value}\n", status="failed", error="invalid_result")
        for value in ("True, 28", "True, 28, None", "0.5, [0.25, 0.75]", "True, [None]", "None, 'why'", "[{'item': 1}], False")
    ),
    javascript(id="JavaScript: a verdict and objects that say why", code="export const check = ({ output }) => [false, [{ item: 'refund' }]]", score=0.0, passed=False, reason='[{"item": "refund"}]'),
    *(
        javascript(id=f"JavaScript: a property called {name} of an exported object", recognised=Contract.EVALUATE, code=f"export const weights = {{\n  {name}{function},\n}}\nexport function evaluate(inputs, outputs, trace) {{\n  return weights.{name}(outputs)\n}}\n", score=1.0)
        for name, function in (("default", ": (output) => 1"), ("in", ": (output) => 1"), ("delete", "(output) {\n    return 1\n  }"), ("enum", ": (output) => 1"))
    ),
    javascript(id="JavaScript: a score and no reason", code="export const check = ({ output }) => [0.25, null]", score=0.25, reason=None, warnings=frozenset({"coerced"})),
    javascript(id="JavaScript: a verdict and reasons", code="export const check = ({ output }) => [false, [`got ${output}`]]", score=0.0, passed=False, reason="got 4"),
    case(id="a lambda", code="same = lambda output, expected: output == expected\n", score=1.0),
    case(id="helpers beside it", code="def _norm(text):\n    return text.strip()\n\ndef words(output):\n    return output.split()\n\ndef score(output, expected):\n    return words(_norm(output)) == words(expected)\n", score=1.0),
    case(id="a data class is returned", code="from dataclasses import dataclass\n\n@dataclass\nclass Result:\n    score: float\n    reason: str\n\ndef score(output, expected):\n    return Result(0.5, 'half')\n", score=0.5, reason="half"),
    case(id="a reward", code="def grade_answer(response):\n    return {'format_reward': 1.0, 'reward': 0.25}\n", score=0.25, metrics={"score": 0.25, "format_reward": 1.0, "reward": 0.25}),
    case(id="a helper called grade", code="def grade(model_answer, key):\n    return model_answer.strip() == key\n\ndef reward_fn(response, ground_truth):\n    return {'reward': 0.5 if grade(response, ground_truth) else 0.0}\n", score=0.5),
    case(id="a score and details", code="def similar(output):\n    return 0.25, {'length': 1}\n", score=0.25, metrics={"score": 0.25, "length": 1}),
    case(id="details and a reward", code="def reward_fn(response, answer):\n    return {'formatted': True}, 0.25\n", score=0.25, metrics={"score": 0.25, "formatted": 1.0}),
    case(id="details and a number that may be anything", code="def describe(output):\n    return {'formatted': True}, 7\n", status="failed", error="invalid_result"),
    case(id="a score of its own name", code="def score(output):\n    return {'name': 'length', 'value': 0.25, 'comment': 'short'}\n", score=0.25, reason="short"),
    case(id="a coroutine", code="async def score(output, expected):\n    return 1.0, 'same'\n", score=1.0, reason="same"),
    case(id="an experiment of Langfuse", code="from langfuse import Evaluation, get_client\n\nclient = get_client()\n\ndef accuracy(*, input, output, expected_output, **kwargs):\n    return Evaluation(name='accuracy', value=0.5 if output == expected_output else 0, comment='half')\n", score=0.5, reason="half"),
    case(id="a score of autoevals", code="from autoevals import Score\n\ndef exact(input, output, expected=None, **kwargs):\n    return Score(name='exact', score=1 if output == expected else 0)\n", score=1),
    case(id="a text that is called context", code="def grounded(output, context):\n    return context == ['sums']\n", score=1.0),
    other(id="a partial of a helper", recognised=Contract.EVALUATE, code="from functools import partial\n\ndef near(factor, output, spans, more):\n    return 0.25\n\nevaluate = partial(near, 1)\n", score=0.25),
    case(id="nothing means that it does not apply", code="def score(output, expected):\n    return None\n", status="skipped", score=None),
    case(id="no ground truth", row=WITHOUT, code="def score(output, expected):\n    return output == expected\n", status="failed", error="missing_input", message="correct_answer"),
    case(id="an unknown column", code="def score(output, keywords):\n    return len(keywords)\n", status="failed", error="missing_input", message="`keywords`"),
    case(id="a list of named scores", code="def quality(input, output, expected):\n    return [{'name': 'exact', 'score': output == expected, 'reason': 'same'}, {'name': 'short', 'score': 0.5}]\n", score=0.75, passed=None, metrics={"score": 0.75, "exact": 1.0, "short": 0.5}, warnings=frozenset({"several_scores"})),
    case(id="a list of named scores, one of which counts", settings=EvaluatorSettings(score_output="short"), code="def quality(output):\n    return [{'name': 'exact', 'score': 1}, {'name': 'short', 'score': 0.5}]\n", score=0.5, passed=None, metrics={"score": 0.5, "exact": 1, "short": 0.5}),
    case(id="a list of named scores, of which the one that counts is None", settings=EvaluatorSettings(score_output="short"), code="def quality(output):\n    return [{'name': 'exact', 'score': 1}, {'name': 'short', 'score': None}]\n", status="skipped", score=None, metrics={"exact": 1}, warnings=frozenset({"skipped"})),
    case(id="a list of named scores, none of which counts", settings=EvaluatorSettings(score_output="c"), code="def quality(output):\n    return [{'name': 'exact', 'score': 1}, {'name': 'short', 'score': 0.5}]\n", status="failed", error="invalid_result", message="settings.score_output is 'c'"),
    case(id="a list of objects with scores", code="from dataclasses import dataclass\n@dataclass\nclass Score:\n    name: str\n    score: float\ndef quality(output):\n    return [Score('a', 1), Score('b', 0)]\n", score=0.5, passed=None, metrics={"score": 0.5, "a": 1, "b": 0}, warnings=frozenset({"several_scores"})),
    case(id="a list of scores whose sum no float can hold", code="def quality(output):\n    return [{'name': 'a', 'score': 1.7e308}, {'name': 'b', 'score': 1.7e308}]\n", score=1.7e308, passed=None, metrics={"score": 1.7e308, "a": 1.7e308, "b": 1.7e308}, warnings=frozenset({"several_scores", "out_of_range"})),
    case(id="a list of named verdicts", code="def checks(output):\n    return [{'name': 'short', 'passed': True}, {'name': 'said', 'ok': output == '4'}, {'name': 'long', 'correct': False}]\n", score=2 / 3, passed=False, metrics={"score": 2 / 3, "short": 1.0, "said": 1.0, "long": 0.0}, warnings=frozenset({"several_scores"})),
    case(id="a list of statuses", code="def checks(output):\n    return [{'name': 'a', 'status': 'pass'}, {'name': 'b', 'status': 'fail'}]\n", score=0.5, passed=False, metrics={"score": 0.5, "a": 1.0, "b": 0.0}, warnings=frozenset({"several_scores", "coerced"})),
    case(id="a list of verdicts in words", code="def checks(output):\n    return [{'name': 'a', 'passed': 'yes'}, {'name': 'b', 'passed': 'no'}]\n", score=0.5, passed=False, metrics={"score": 0.5, "a": 1.0, "b": 0.0}, warnings=frozenset({"several_scores", "coerced"})),
    case(id="a list of verdicts that mean neither", code="def checks(output):\n    return [{'name': 'a', 'passed': 'maybe'}]\n", status="failed", error="invalid_result", message="a: `passed` is the text 'maybe', which means neither"),
    case(id="ok as the verdict", code="def score(output):\n    return {'ok': output == '4', 'detail': 'same'}\n", score=1.0, passed=True),
    case(id="a status of pass", code="def score(output):\n    return {'dimension': 'tools', 'status': 'pass' if output == '4' else 'fail'}\n", score=1.0, passed=True, warnings=frozenset({"coerced"})),
    case(id="a status of another kind", code="def score(output):\n    return {'status': 'failed', 'words': 3}\n", score=None, passed=None, metrics={"words": 3}, warnings=frozenset({"no_score"})),
    case(id="correct as a count", code="def score(output):\n    return {'correct': 3, 'success': False}\n", score=0.0, passed=False, metrics={"score": 0.0, "correct": 3}),
    case(id="correct beside a score", code="def score(output):\n    return {'correct': True, 'score': 0.5}\n", score=0.5, passed=None, metrics={"score": 0.5, "correct": 1.0}),
    case(id="an overall score", code="def score(output):\n    return {'clear': 0.5, 'overall_score': 0.75}\n", score=0.75, passed=None, metrics={"score": 0.75, "clear": 0.5, "overall_score": 0.75}),
    case(id="an overall score beside a verdict", code="def score(output):\n    return {'passed': True, 'total_score': 8}\n", score=1.0, passed=True, metrics={"score": 1.0, "total_score": 8}),
    case(id="an overall score beside a verdict in words", code="def score(output):\n    return {'passed': 'FAILED', 'total_score': 8}\n", score=0.0, passed=False, metrics={"score": 0.0, "total_score": 8}, warnings=frozenset({"coerced"})),
    case(id="an overall score beside a status", code="def score(output):\n    return {'status': 'fail', 'total_score': 0.8}\n", score=0.8, metrics={"score": 0.8, "total_score": 0.8}),
    case(id="variables beside outputs", row=Row({"question": "2+2"}, "4", variables={"limit": 2}), code="def score(output, question, limit):\n    return question == '2+2' and len(output) < limit\n", score=1.0),
    case(id="a list of keys and values", code="def quality(output):\n    return [{'key': 'a', 'value': 1}]\n", score=1, passed=None, metrics={"score": 1, "a": 1}),
    case(id="a list of scores that do not apply", code="def quality(output):\n    return [{'name': 'a', 'score': None}]\n", status="skipped", score=None, passed=None, metrics={}, warnings=frozenset({"skipped"})),
    case(id="a list in which a score is text", code="def quality(output):\n    return [{'name': 'a', 'score': 1}, {'name': 'b', 'score': 'good'}]\n", status="failed", error="invalid_result", message="b: the score is the text 'good', not a number"),
    case(id="a list in which an object has no score", code="def quality(output):\n    return [{'name': 'a', 'score': 1}, {'name': 'b'}]\n", status="failed", error="invalid_result", message="b: the object has no score"),
    javascript(id="JavaScript: a list of named scores", code="export async function quality({ input, output, expected }) { return [{ name: 'exact', score: output === expected ? 1 : 0 }, { name: 'short', score: 0.5 }] }\n", score=0.75, passed=None, metrics={"score": 0.75, "exact": 1, "short": 0.5}, warnings=frozenset({"several_scores"})),
    typescript(id="TypeScript: a list of named scores", code="type Args = { input: unknown; output: string };\nexport async function quality({ output }: Args) { return [{ name: 'a', score: output === '4' }, { name: 'b', score: true }] }\n", score=1, passed=True, metrics={"score": 1, "a": 1, "b": 1}, warnings=frozenset({"several_scores"})),
    case(id="several functions", code="def a(output, expected):\n    return 1\n\ndef b(output, expected):\n    return 0\n", score=0.5, passed=None, metrics={"a": 1, "b": 0}, warnings=frozenset({"several_entries"})),
    case(id="one for one output, and one for many", row=Row({"truth": "4"}, "so 4"), code="def last_word(text):\n    return text.split()[-1]\n\ndef reward(generated_text, truth):\n    return float(last_word(generated_text) == truth)\n\ndef rewards_of_group(generated_texts, truth):\n    return [reward(one, truth) for one in generated_texts]\n", score=1.0),
    case(id="several verdicts", code="def a(output, expected):\n    return True\n\ndef b(output, expected):\n    return False\n", score=0.5, passed=False, metrics={"a": 1.0, "b": 0.0}),
    case(id="two outputs", recognised=None, code="def score(prediction, output):\n    return 1\n", status="failed", error="entry_not_found"),
    other(id="by position", code="def evaluate(inputs, output, trace):\n    return output == inputs['correct_answer']\n", recognised=Contract.EVALUATE, score=1.0),
    other(id="names that say nothing", code="def evaluate(row, said, more):\n    return said == row['correct_answer']\n", recognised=Contract.EVALUATE, score=1.0),
    other(id="declared by position", contract=Contract.EVALUATE, code="def evaluate(input, output, expected):\n    return output == expected\n", recognised=Contract.EVALUATE, score=0.0, warnings=frozenset({"suspicious_parameters"})),
    case(id="beside the main of a program", code="def score(output, expected):\n    return output == expected\n\ndef main(argv: list[str] | None = None):\n    print(argv)\n\nif __name__ == '__main__':\n    main()\n", score=1.0),
    other(id="a helper beside main", code="def score(output, expected):\n    return output == expected\n\ndef main(output, correct_answer):\n    return {'score': score(output, correct_answer)}\n", recognised=Contract.MAIN, score=1.0),
    javascript(id="JavaScript: by name", code="function exact(output, expected) { return output === expected }", passed=True),
    javascript(id="JavaScript: one object", code="export const exact = ({ output, expected, question }) => ({ name: 'exact', score: output === expected && question === '2+2' ? 1 : 0 })", score=1),
    javascript(id="JavaScript: an object by its properties", code="export async function match(args) { return { name: 'match', score: args.output === args.expected ? 1 : 0 } }", score=1),
    javascript(id="JavaScript: a helper beside it", code="const norm = (output) => output.trim()\nconst exact = (output, expected) => norm(output) === norm(expected)", passed=True),
    case(id="TypeScript: a function that takes its object apart", language=Language.TYPESCRIPT, code="const norm = (output: string) => output.trim()\nexport const scorer = (args: any) => { const { output, expected } = args; return norm(output) === expected ? 1 : 0 }", score=1),
    case(id="TypeScript: a function that does not say what it is given", language=Language.TYPESCRIPT, recognised=None, code="const norm = (output: string) => output.trim()\nexport const scorer = (args: any) => read(args)\nconst read = ({ said }: any) => norm(said)", status="failed", error="entry_ambiguous", message="scorer(args) in line 2 may be the evaluator, but its parameter does not show"),
    javascript(id="JavaScript: evaluate", code="function evaluate(input, output, expected) { return output === expected }", passed=True),
    javascript(id="JavaScript: a default export", code="export default function (output, expected) { return output === expected }", passed=True),
    javascript(id="JavaScript: a function that runs the checks that a case names", row=Row(variables={"response": "4", "assertion": {"type": "max", "value": 0}}), code="export function assertHas(response, value) { return response.includes(value) }\nexport function assertMax(response, max) { return response.length <= max }\nexport function runAssertion(response, assertion) {\n  const passed = assertion.type === 'has' ? assertHas(response, assertion.value) : assertMax(response, assertion.value)\n  return { passed, reason: assertion.type }\n}\n", passed=False, reason="max"),
    javascript(id="JavaScript: the scores of several asserts", row=Row(variables={"namedScores": {"a": 1, "b": 0.5}, "context": {"threshold": 0.5}}), code="module.exports = function (namedScores, context) {\n  const all = Object.values(namedScores)\n  const score = all.reduce((sum, one) => sum + one, 0) / all.length\n  return { pass: score >= context.threshold, score, reason: 'mean' }\n}\n", score=0.75, passed=True),
    typescript(id="TypeScript: an output and a ground truth beside other parameters", row=Row({"expected": "4"}, "4"), code="export function compliance(actual: unknown, expected: unknown, _source?: string, schema?: object) {\n  return { score: actual === (schema ?? expected) ? 0.5 : 0 };\n}\n", score=0.5),
    javascript(id="JavaScript: the only export, named as one that scores", row=Row(variables={"c": {"needle": "4"}, "r": {"answer": "4"}}), code="export function contains(answer, needle) { return answer.includes(needle) }\nexport function grade(c, r) { return { pass: contains(r.answer, c.needle), reasons: [] } }", passed=True),
    javascript(id="JavaScript: a helper that is not exported", row=Row(variables={"actual": "4", "expected": "4", "sample": {}}), recognised=None, code="function scoreExact(actual, expected) { return actual === expected ? 1 : 0 }\nexport function runCase(sample, ask) { return scoreExact(ask(sample), sample.expected) }", status="failed", error="entry_not_found", message="for example runCase"),
    javascript(id="JavaScript: a table of functions", row=Row(variables={"input": "q", "output": "4"}), recognised=None, code="export const metrics = {\n  relevance: async ({ input, output, llm }) => ({ name: 'relevance', score: await llm(input, output) }),\n};", status="failed", error="entry_not_found", message="the exported object metrics has relevance name one of them in `settings.entry`, for example relevance"),
    javascript(id="JavaScript: a named function of a table", row=Row(variables={"input": "q", "output": "4"}), settings=EvaluatorSettings(entry="relevance"), code="export const metrics = {\n  relevance: async ({ input, output, llm }) => ({ name: 'relevance', score: await llm(input, output) }),\n};", status="failed", error="user_exception", message="the evaluator needs llm"),
    javascript(id="JavaScript: a function that asks beside one that writes what it asks", row=Row(variables={"req": {"answer": "4"}}), recognised=None, code="export function buildJudgePrompt(req) { return { user: req.answer } }\nexport async function callJudge(url, req) { return { score: 5 } }", status="failed", error="entry_not_found", message="for example callJudge"),
    javascript(id="JavaScript: helpers of a helper that is not exported", row=Row(variables={"output": "4", "hint": "4", "calls": []}), code="const scoreLength = (output) => (output.length > 2 ? 10 : 0)\nconst scoreAll = ({ output, hint }) => scoreLength(output) + (output === hint ? 0.5 : 0)\nexport const grade = async ({ output, hint, calls }) => ({ pass: calls.length === 0, score: scoreAll({ output, hint }) })", score=0.5, passed=True),
    javascript(id="JavaScript: an assertion that a case names, beside a function that registers others", row=Row(variables={"assertion": {"path": "a", "value": 3}, "data": {"a": 4}}), code="const others = {}\nexport function registerAssertion(name, fn) { others[name] = fn }\nexport function runAssertion(assertion, data) { return { passed: data[assertion.path] === assertion.value, message: 'm' } }", passed=False),
    javascript(id="JavaScript: functions in a list of evaluators", row=Row(variables={"run": {"score": 4}, "expected": {"range": [1, 3]}}), code="const done = (run) => ({ name: 'done', score: run.score === 4 ? 1 : 0 })\nconst inRange = (run, expected) => ({ name: 'in range', score: run.score <= expected.range[1] ? 1 : 0 })\nexport const SCORERS = [done, inRange]", score=0.5, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: a parameter that the function says it does not use", code="export const exact = (output, expected) => output === expected\nexport const any = (output, _expected) => output === '4'\n", score=1.0, metrics={"any": 1.0, "exact": 1.0}, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: expect", code="export const exact = (output, expect) => output === expect\n", passed=True),
    javascript(id="JavaScript: functions in a table, of one parameter that is a list", row=Row(variables={"angles": [{"hook": "a"}, {"hook": ""}]}), code="export const hooked = (angles) => angles.filter((one) => one.hook).length / angles.length;\nexport function sized(angles) {\n  for (const one of angles) if (one.size) return 1;\n  return 0;\n}\nexport const SCORERS = { hooked, sized };\n", score=0.25, metrics={"hooked": 0.5, "sized": 0.0}),
    javascript(id="JavaScript: an export that scores, beside others", row=Row(variables={"turn": {"text": "4"}}), code="export const total = (results) => results.length\nexport function scoreTurn(turn) { return { name: 'same', value: turn.text === '4' ? 0.5 : 0 } }\nexport function createScorer() { return { score: scoreTurn } }\n", score=0.5, metrics={"score": 0.5, "value": 0.5}),
    javascript(id="JavaScript: several exports that score", row=Row(variables={"result": {"answer": "4"}, "limit": 2}), code="export function checkShort(result, limit) { return { pass: result.answer.length < limit } }\nexport function checkSaid(result, wanted) { return { pass: result.answer === wanted } }\n", score=1.0, passed=True, metrics={"checkShort": 1.0}, warnings=frozenset({"several_entries", "entry_failed"})),
    javascript(id="JavaScript: exports whose names say that they score, of an output and columns", row=Row(variables={"response": "4", "expected": "4", "banned": "5"}), code="export const assertSame = (response, expected) => ({ passed: response === expected })\nexport const assertWithout = (response, banned) => ({ passed: response === banned })\n", score=0.5, passed=False, metrics={"assertSame": 1.0, "assertWithout": 0.0}),
    javascript(id="JavaScript: a list of checks", row=Row(variables={"item": {"min": 2}, "found": {"count": 2}}), code="export const enough = (item, found) => ({ name: 'enough', ok: found.count >= item.min })\nexport const many = (_item, found) => ({ name: 'many', ok: found.count > 5 })\nexport const ratio = (found) => found.count / 10\nexport const checks = [enough, many]\n", score=0.5, passed=False, metrics={"enough": 1.0, "many": 0.0}),
    javascript(id="JavaScript: a method of an object that is exported", row=Row(variables={"context": {"calls": ["a"]}}), code="export const judge = { name: 'calls', evaluate(context) { return { score: context.calls.length / 2 } } }\n", score=0.5),
    *(
        javascript(id=f"JavaScript: a method that reads the output from its row: {code}", code=code, score=1)
        for code in (
            "export default { evaluate(sample) { return sample.output === sample.expected ? 1 : 0 } }",
            "class Same { evaluate(row) { return row.output === row.expected ? 1 : 0 } }\nexport default new Same()",
            "export const scorer = { name: 'same', async evaluate(args) { const { output, expected } = args; return { score: output === expected ? 1 : 0 } } }",
        )
    ),
    javascript(id="JavaScript: a named function without a sign of a contract", row=Row(variables={"results": ["a", "b"], "wanted": "b"}), settings=EvaluatorSettings(entry="hitRate"), code="export const hitRate = (results, wanted) => results.includes(wanted)\nexport const rank = (results, wanted) => 1 / (results.indexOf(wanted) + 1)\n", passed=True),
    javascript(id="JavaScript: a named function that another one uses", row=Row(variables={"scenario": {"said": "4"}, "summary": {"text": "4"}}), settings=EvaluatorSettings(entry="scoreRun"), code="export function scoreRun(scenario, summary) { return summary.text === scenario.said ? 0.5 : 0 }\nexport const scoreAll = (scenario, summaries) => summaries.map((one) => scoreRun(scenario, one)).length\n", score=0.5),
    javascript(id="JavaScript: a named function without exports", row=Row({"limit": 2}, "4"), settings=EvaluatorSettings(entry="within"), code="const within = (answer, limit) => answer.length < limit\nconst other = (answer) => 0\n", passed=True),
    *(
        javascript(id=f"JavaScript: a named function of {heads}", recognised=Contract.EVALUATE, settings=EvaluatorSettings(entry="rate"), code=f"export const rate = ({heads}) => {heads.split(', ')[1]} === '4'\n", passed=True)
        for heads in ("example, outputs, trace", "request, second, meta")
    ),
    javascript(id="JavaScript: a named function of the row's parts", recognised=Contract.EVALUATE, settings=EvaluatorSettings(entry="rate"), code="export const rate = (i, o, t) => o === '4'\n", passed=True),
    javascript(id="JavaScript: a named assert", recognised=Contract("promptfoo"), settings=EvaluatorSettings(entry="check"), code="module.exports.check = (out, opts) => out === '4'\n", passed=True),
    javascript(id="JavaScript: methods of an exported grader", row=Row(variables={"state": {"hits": 1, "total": 2}}), code="export const hitGrader = {\n  recall(state) {\n    return state.hits / state.total\n  },\n  precision(state) {\n    return state.hits\n  },\n}\n", score=0.75, metrics={"recall": 0.5, "precision": 1}, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: the method that scores, of an exported object", row=Row(variables={"state": {"hits": 1}}), code="export const grader = {\n  penalty(state, limit) {\n    return 0\n  },\n  score: (state) => state.hits / 2,\n}\n", score=0.5),
    javascript(id="JavaScript: a method of an exported object that takes one object", code="export const same = {\n  name: 'same',\n  score: ({ output, expected }) => output === expected,\n}\n", passed=True),
    javascript(id="JavaScript: the only method of the default export", row=Row({"config": {"wanted": "4"}}, "4"), code="export default {\n  type: 'same',\n  run: async (output, config) => ({ passed: output === config.wanted }),\n}\n", passed=True),
    *(javascript(id=f"JavaScript: an exported object that does not score: {code}", row=Row({"path": "p", "prompt": "p"}, "4"), code=code, recognised=None, status="failed", error="entry_not_found", message="no function evaluate or main") for code in ("export const gradeStore = {\n  load(path) { return 1 },\n}\n", "export default {\n  fetch(path) { return 1 },\n}\n", "export const promptEvaluator = {\n  render(path) { return 1 },\n  send(prompt) { return 1 },\n}\n")),
    javascript(id="JavaScript: a judge that hides a missing client, beside a check", code="import OpenAI from 'openai'\nconst client = new OpenAI()\nexport const checkSaid = (output) => output === '4'\nexport async function judgeAnswer(output) { try { return await client.chat.completions.create({}) } catch { return 0.5 } }\n", score=1.0, metrics={"checkSaid": 1.0}, warnings=frozenset({"entry_failed"})),
    javascript(id="JavaScript: a judge that hides a missing package of the author's own, beside a check", code="import { ask } from '@own/shared'\nexport const checkSaid = (output) => output === '4'\nexport function judgeAnswer(output) { try { return ask(output) } catch { return 0.5 } }\n", score=1.0, metrics={"checkSaid": 1.0}, warnings=frozenset({"entry_failed"})),
    javascript(id="JavaScript: an answer that is the output", row=Row({"c": {"needle": "4"}}, "4"), code="export const gradeAnswer = (c, answer) => ({ pass: answer.includes(c.needle) })\n", passed=True),
    javascript(id="JavaScript: the output, not the input of the same name", row=Row({"text": "a long article"}, "41"), code="export function scoreText(text) { return text === '41' }\n", passed=True),
    javascript(id="JavaScript: a variable, not the output", row=Row(variables={"text": "4", "output": "41"}), code="export function scoreText(text) { return text === '4' }\n", passed=True),
    javascript(id="JavaScript: a judge that hides a package that nobody knows", code="import { ask } from '@own/shared'\nexport function score(output) { try { return ask(output) } catch { return 0 } }\n", status="failed", error="user_exception", message="goes on without @own/shared"),
    javascript(id="JavaScript: a judge that waits, and hides a package that nobody knows", code="import { ask } from '@own/shared'\nexport async function score(output) { try { return await ask(output) } catch { return 0 } }\n", status="failed", error="user_exception", message="goes on without @own/shared"),
    javascript(id="JavaScript: an answer beside the output", row=Row({"question": "2+2"}, "4"), code="export const gradeAnswer = (output, answer) => output === answer\n", status="failed", error="user_exception", message="needs answer"),
    javascript(id="JavaScript: variables beside outputs", row=Row(outputs="4", variables={"limit": 2}), code="export const scoreLength = (output, limit) => output.length < limit\n", passed=True),
    typescript(id="TypeScript: a package of the author's own", code="import { ask } from '@own/shared';\nconst judge = async (output: string) => ask(output);\nexport const score = (output: string) => (output === '4' ? 1 : judge(output));\n", score=1, warnings=frozenset({"missing_import"})),
    typescript(id="TypeScript: a package of the author's own that is used", code="import { ask } from '@own/shared';\nexport const score = (output: string) => ask(output);\n", status="failed", error="user_exception", message="@own/shared"),
    javascript(id="JavaScript: a module of Bun", code="import { Database } from 'bun:sqlite'\nexport const score = (output) => new Database(output)\n", recognised=None, status="failed", error="load_error", message="the host runs code with Node.js, which has no module bun:sqlite"),
    javascript(id="JavaScript: the only export, of one object", row=Row(variables={"question": "2+2", "answer": "4"}), code="export async function evaluateSum({ question, answer }) { return eval(question) === Number(answer) }", passed=True),
    *(javascript(id=f"JavaScript: a client that is made ready while the code loads: {use}", code=f"""import {{ ChatOpenAI }} from '@langchain/openai';
import {{ ChatPromptTemplate }} from '@langchain/core/prompts';
const judge = ChatPromptTemplate.fromTemplate('{{a}}').pipe(new ChatOpenAI({{ temperature: 0 }}).withStructuredOutput({{}}));
export const exact = (output, expected) => {use};
""", **more) for use, more in (("output === expected", {"passed": True}), ("judge.invoke(output)", {"status": "failed", "error": "user_exception", "message": "@langchain/"}))),
    javascript(id="JavaScript: columns", row=COLUMNS, code="const score = (output, expected) => output === expected", passed=True),
    javascript(id="JavaScript: a default", row=WITHOUT, code="const score = ({ output, expected = '4' }) => output === expected", passed=True),
    javascript(id="JavaScript: no ground truth", row=WITHOUT, code="const score = (output, expected) => 1", status="failed", error="user_exception", message="expected"),
    javascript(id="JavaScript: no ground truth in an object", row=WITHOUT, code="const score = ({ output, expected }) => output === expected", status="failed", error="user_exception", message="expected"),
    *(
        javascript(id=f"JavaScript: a key that is never read: {head}", row=WITHOUT, code=f"const score = {head} => output === '4'", passed=True)
        for head in ("({ output, expected })", "({ output, expected, trace: whole })", "({ output, 'reference': truth, metadata } = {})")
    ),
    *(
        javascript(id=f"JavaScript: a key that is read: {code}", row=WITHOUT, code=f"const score = {code}", status="failed", error="user_exception", message="expected")
        for code in ("({ output, expected }) => () => expected", "({ output, expected, input = expected }) => 1", "function ({ output, expected }) { return arguments[0].expected }")
    ),
    javascript(id="JavaScript: by position", recognised=Contract.EVALUATE, code="function evaluate(inputs, outputs) { return outputs === inputs.correct_answer }", passed=True),
    case(
        id="TypeScript: a key that the caller's row lacks", language=Language.TYPESCRIPT, score=0.5,
        row=Row(variables={"input": "q", "output": "x", "expected": "y", "metadata": {"wanted": ["a", "b"], "used": ["a"]}}),
        code="export function sameTools({ output, expected, inputs, metadata }: any) {\n  return { name: 'tools', score: metadata.used.length / metadata.wanted.length };\n}\n",
    ),
    case(id="TypeScript", language=Language.TYPESCRIPT, code="export function score(response: string, reference: string): number { return response === reference ? 1 : 0 }", score=1),
    typescript(id="TypeScript: an optional property", code="export function score({ output, expected }: { output: string; expected?: string }) {\n  return expected === undefined;\n}\n", score=1.0),
    typescript(id="TypeScript: an optional property of a type", code="interface Args { output: string; expected?: string }\nexport const score = ({ output, expected }: Args): boolean => expected === undefined;\n", score=1.0),
    typescript(id="TypeScript: an optional parameter", code="export const score = (output: string, expected?: string) => expected === undefined;\n", score=1.0),
    typescript(id="TypeScript: what is not optional", code="export const score = (output: string, expected: string) => expected === undefined;\n", status="failed", error="user_exception", message="needs expected"),
]  # fmt: skip
