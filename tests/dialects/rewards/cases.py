"""Reward functions of verl, TRL and verifiers, and the rewards that these platforms make from the returned values.

The expected results follow the sources of verl 0.9.1, trl 1.16.0 and verifiers 0.1.14.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

OURS = Row({"question": "2+2", "correct_answer": "4"}, "It is 4")
CHAT = Row(
    {
        "messages": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "It is 4"}],
        "correct_answer": "4",
    },
    "It is 4",
)
VERL = Row(
    variables={"data_source": "gsm8k", "solution_str": "#### 4", "ground_truth": "4", "extra_info": {"index": 7}}
)
GROUP = Row(variables={"prompts": ["a", "b"], "completions": ["x", "yy"], "size": [1, 3]})
STALE = Row({"prompt": "q", "answer": "2", "completion": "old 1", "completions": ["old 1"], "solution_str": "old 1", "state": {"completion": "old 1"}}, "new 2")  # fmt: skip
BAD_GROUPS: list[tuple[dict[str, Any], str, str]] = [
    ({"prompts": "q", "completions": "Paris", "answer": "Paris"}, "binding_error", "`prompts` of `variables` is str"),
    ({"completions": ["abc", "de"], "answer": ["abc"]}, "binding_error", "has 1 elements"),
    ({"completions": ["abc"], "answer": "abc"}, "binding_error", "`answer` of `variables` is str"),
    ({"completion": ["abc"], "answer": "abc"}, "missing_input", "no completion"),
    ({"prompt": "q", "answer": "abc"}, "missing_input", "no completion"),
    ({"prompts": ["q"], "answer": ["abc"]}, "missing_input", "no completion"),
]

case = partial(NativeCase, row=OURS, recognised=Contract("rewards"))
refused = partial(case, status="failed", error="invalid_result")


def verl(value: str) -> str:
    """Return code for verl: a function that returns this expression."""
    return f"def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return {value}\n"


def trl(value: str) -> str:
    """Return code for TRL: a function that returns this expression."""
    return f"def reward(completions, **kwargs):\n    return {value}\n"


def rollout(value: str) -> str:
    """Return code for verifiers: a function that returns this expression."""
    return f"async def correct(completion, answer):\n    return {value}\n"


def one(reward: Any, name: str = "reward", **more: Any) -> dict[str, Any]:
    """Return the native result that a case expects for one reward, with `more` fields such as `weight`."""
    return {"name": name, "reward": reward, **more}


TWO = "def short(completions, **kwargs):\n    return [1.0 for _ in completions]\ndef long(completions, **kwargs):\n    return [0.5 for _ in completions]\n"
CASES = [
    case(id="TRL: rewards that another function adds up", row=Row(outputs="4"), code=TWO + "def total_reward(environments, **kwargs):\n    return [2 * a + b for a, b in zip(short(environments), long(environments))]\n", score=1.5, warnings=frozenset({"several_entries", "entry_left_out", "out_of_range"})),
    *[
        case(id=f"two rewards that a function uses, but does not add up: {code}", row=Row(outputs="4"), code=TWO + code, score=1.5, unwarned=frozenset({"entry_left_out"}))
        for code in (
            "def get_reward_funcs(script_args):\n    registry = {'short': short, 'long': long}\n    return [registry[name] for name in script_args.reward_funcs]\n",
            "def test_reward():\n    assert short(['a']) + long(['b']) == [1.0, 0.5]\n",
            "def test_reward(text):\n    assert short([text]) + long([text])\n    return True\n",
            "def train_with_rewards(model):\n    trainer = GRPOTrainer(model, reward_funcs=[short, long])\n    return trainer.train()\n",
            "def total_reward(texts):\n    return sum(short(texts) + long(texts))\ndef train(model):\n    return GRPOTrainer(model, reward_funcs=[short, long])\n",
            "def print_rewards(texts):\n    print(short(texts) + long(texts))\n",
            "def reward_summary(texts):\n    return {'short': sum(short(texts)) * 1.0, 'long': sum(long(texts))}\n",
            "def reward_report(texts):\n    report = {}\n    report['short'], report['long'] = short(texts), long(texts)\n    return report\n",
            "def make_reward(weight):\n    def both(texts):\n        return short(texts)[0] + weight * long(texts)[0]\n    return both\n",
            "def demo_score():\n    return short(['a'])[0] + long(['b'])[0]\n",
        )
    ],
    case(id="verifiers: the rubric of a loader whose name is that of a reward", row=Row({"question": "q", "correct_answer": "4"}, "4"), code="""
        import verifiers as vf

        def correct(completion, answer, **kwargs):
            return float(completion[-1]["content"] == answer)

        def short(completion, **kwargs):
            return 0.5

        def build_reward_rubric():
            rubric = vf.Rubric(funcs=[correct, short], weights=[1.0, 0.5])
            return rubric
    """, score=1.25, warnings=frozenset({"entry_found_inside"}), unwarned=frozenset({"entry_left_out"})),
    case(id="verl: a number", row=VERL, code=verl("float(solution_str.split('#### ')[1] == ground_truth)"), native=[one(1.0, "compute_score")], score=1.0),
    case(id="verl: a dict", row=VERL, code=verl("{'score': -1.5, 'acc': True, 'pred': data_source, 'index': extra_info['index']}"), native=[{"score": -1.5, "acc": True, "pred": "gsm8k", "index": 7}], score=-1.5, metrics={"score": -1.5, "compute_score": -1.5, "acc": 1.0, "index": 7}),
    case(id="EasyR1: one object", code="def compute_score(reward_input: dict, weight: float = 0.5) -> dict:\n    right = reward_input['ground_truth'] in reward_input['response']\n    return {'overall': weight * right, 'accuracy': float(right)}\n", score=0.5),
    case(id="EasyR1: a list of objects", code="def compute_score(reward_inputs: list) -> list:\n    return [{'overall': float(one['response_length'])} for one in reward_inputs]\n", score=3.0),
    case(id="EasyR1: a text and the truth", code="def part(predict):\n    return 0.5\n\ndef compute_score(predict: str, ground_truth: str) -> dict:\n    return {'overall': part(predict) + (ground_truth in predict)}\n", score=1.5, metrics={"overall": 1.5, "compute_score": 1.5, "score": 1.5}),
    case(id="EasyR1: texts and truths", row=Row(variables={"predicts": ["4"], "ground_truths": ["4"]}), code="def compute_score(predicts: list, ground_truths: list) -> list:\n    return [{'overall': float(one == other)} for one, other in zip(predicts, ground_truths)]\n\ndef compute_other(predicts, ground_truths):\n    return []\n", score=1.0),
    case(id="verl: several, of which none is compute_score", row=VERL, code="def strict(solution_str, ground_truth):\n    return 1.0\n\ndef loose(solution_str, ground_truth):\n    return 0.5\n", status="failed", error="entry_ambiguous", message="of which verl calls one", recognised=None),
    case(id="TRL: rewards, and a function that sums them", code="from typing import Any, Dict\n\ndef short(completions, **kwargs):\n    return [0.5 for one in completions]\n\ndef right(completions, answer, **kwargs):\n    return [2.0 for one in completions]\n\ndef count(completions):\n    return len(completions), 1\n\ndef report(completions, answer) -> Dict[str, Any]:\n    made = {'mean': sum(right(completions, answer)) / count(completions)[0]}\n    return made\n", score=2.5, metrics={"score": 2.5, "short": 0.5, "right": 2.0}),
    case(id="EasyR1: a trainer's own arguments", row=Row(variables={"predicts": ["4"], "ground_truths": ["4"], "lengths": [8], "brief": True}), code="def compute_score(predicts, ground_truths, lengths, brief):\n    return [{'overall': 1 / size if brief else 0.0} for size in lengths]\n", score=0.125),
    case(id="EasyR1: a number is refused", code="def compute_score(reward_input):\n    return 1.0\n", status="failed", error="invalid_result", message="overall"),
    case(id="verl: a bool", row=VERL, code=verl("True"), score=1.0),
    case(id="verl: a row in the host's form", code=verl("(data_source, solution_str, ground_truth, extra_info['question'], extra_info['num_turns']) == ('', 'It is 4', '4', '2+2', None)"), score=1.0),
    case(id="verl: reward_kwargs", code="def compute_score(solution_str, ground_truth, scale=1):\n    return scale\n", settings=EvaluatorSettings(config={"scale": 5}), score=5),
    case(id="verl: a batch", code="def compute_score(data_sources, solution_strs, ground_truths, extra_infos):\n    return [{'score': len(one)} for one in solution_strs]\n", native=[{"score": 7}], score=7),
    case(id="verl: a coroutine of another name, a helper", row=VERL, code="def extract(solution_str):\n    return solution_str[-1]\n\nasync def em(data_source, solution_str, ground_truth, extra_info):\n    return float(extract(solution_str) == ground_truth)\n", score=1.0),
    *[refused(id=f"verl refuses {value}", row=VERL, code=verl(value)) for value in ("None", "'1'", "[1]", "{'acc': 1}", "{'score': '1'}")],
    case(id="TRL: one completion", code=trl("[float('4' in one) for one in completions]"), native=[one(1.0)], score=1.0, metrics={"score": 1.0, "reward": 1.0}),
    case(id="TRL: columns, prompts", code="def reward(prompts, completions, correct_answer, question, trainer_state, **kwargs):\n    return [len(c) * 10 for c, a in zip(completions, correct_answer) if a in c and prompts == question and trainer_state is None]\n", score=70),
    case(id="TRL: other names of the truth", code="def reward(completions, solution):\n    return [s in c for c, s in zip(completions, solution)]\n", score=1.0),
    case(id="TRL: conversational", code="def reward(completions, answer, **kwargs):\n    return [a in c[0]['content'] and c[-1]['role'] == 'assistant' for c, a in zip(completions, answer)]\n", score=1.0),
    case(id="TRL: a conversation", row=CHAT, code="def reward(prompts, completions, **kwargs):\n    return [prompts[0][-1]['content'] == '2+2' and '4' in completions[0][0]['content']]\n", score=1.0),
    case(id="TRL: None does not apply", code=trl("[None]"), status="skipped", native=[one(None)], warnings=frozenset({"skipped"})),
    case(id="TRL: NaN does not apply", code=trl("[float('nan')]"), status="skipped", native=[one(None)]),
    case(id="TRL: a group", row=GROUP, code="def reward(prompts, completions, size):\n    return [len(c) - s for c, s in zip(completions, size)]\n", native=[{"name": "reward", "rewards": [0, -1]}], score=-0.5),
    case(id="TRL: logged values", code="def reward(completions, log_metric, log_extra):\n    log_metric('length', 3)\n    log_extra('seen', completions)\n    return [0.5]\n", native=[one(0.5), {"logged": {"length": 3}, "extra": {"seen": ["It is 4"]}}], score=0.5, metrics={"score": 0.5, "reward": 0.5, "length": 3}),
    case(id="the rewards of several functions are summed", code=trl("[0.5]") + "\ndef brevity(completions, **kwargs):\n    return [-0.25]\n\ndef none(completions, **kwargs):\n    return [None]\n", native=[one(0.5), one(-0.25, "brevity"), one(None, "none")], score=0.25, metrics={"score": 0.25, "reward": 0.5, "brevity": -0.25}),
    case(id="functions for TRL beside a helper for verifiers and a function for verl", code=trl("[0.5]") + "\ndef short(completions, **kwargs):\n    return [0.25]\n\ndef text(completion, field):\n    return completion\n\ndef one(completion, answer):\n    return 4\n\ndef total(solution_str, ground_truth):\n    return 8\n", score=0.75),
    case(id="a helper that calls all reward functions", code=trl("[0.5]") + "\ndef single(word, completion):\n    return reward([completion])[0]\n", score=0.5),
    case(id="asyncio.run in a plain function", code="import asyncio\n\nasync def ask():\n    return 0.5\n\n" + trl("[asyncio.run(ask())]"), score=0.5),
    case(id="a helper that a class uses", recognised=None, status="failed", error="entry_not_found", message="add `def evaluate(inputs, outputs, trace): return Format()(outputs)` as the last line", code="def text(completion):\n    return completion\n\nclass Format:\n    def __call__(self, completions, **kwargs):\n        return [len(text(one)) for one in completions]\n"),
    case(id="several functions with weights", settings=EvaluatorSettings(config={"reward_weights": [2, 1]}), code=trl("[0.5]") + "\ndef brevity(completions, **kwargs):\n    return [1]\n", native=[one(0.5, weight=2), one(1, "brevity")], score=2.0),
    case(id="one of several functions", settings=EvaluatorSettings(entry="brevity"), code=trl("[0.5]") + "\ndef brevity(completions, **kwargs):\n    return [1]\n", native=[one(1, "brevity")]),
    *[refused(id=f"TRL refuses {value}", code=trl(value)) for value in ("0.5", "[1, 2]", "['1']", "[[1]]")],
    *[refused(id=f"TRL refuses {value}", code=trl(value), message="list with a reward") for value in ("'0.5'", "{'score': [0.5]}")],
    *[case(id=f"TRL: a list of lists, {annotation}, {'group' if row.variables else 'row'}", row=row, code=f"import typing\ndef reward(completions, tags: {annotation}):\n    return [float(all(one in tags for one in completion.split())) for completion in completions]\n", score=0.0, warnings=frozenset({"list_of_lists"})) for annotation in ("list[str]", "'List[str]'", "typing.Optional[typing.List[str]]", "typing.Sequence[str] | None") for row in (Row({"tags": ["a", "b"]}, "a b"), Row(variables={"completions": ["a b", "a"], "tags": [["a", "b"], ["a"]]}))],
    case(id="TRL: NaN has a warning", code=trl("[float('nan')]"), status="skipped", warnings=frozenset({"non_finite"})),
    case(id="TRL: outputs, not a column `completion`", row=STALE, code="def reward(completions, answer, **kwargs):\n    return [float(a in c) for a, c in zip(answer, completions)]\n", score=1.0),
    case(id="verl: outputs, not a column", row=STALE, code="def compute_score(solution_str, ground_truth=None):\n    return '2' in solution_str\n", score=1.0),
    case(id="verifiers: outputs, not a column", row=STALE, code="def f(completion, state, answer):\n    return completion == state['completion'] and answer in completion[0].content\n", score=1.0),
    *[case(id=f"TRL: variables {given}", contract=Contract("rewards"), row=Row(variables=given), code="def reward(completions, answer=None, **kwargs):\n    return [1.0 for c, a in zip(completions, answer)]\n", status="failed", error=error, message=message) for given, error, message in BAD_GROUPS],
    case(id="verl: a batch in variables", row=Row(variables={"data_sources": ["a", "b"], "solution_strs": ["1", "22"], "ground_truths": ["1", "2"], "extra_infos": [{}, {}]}), code="def compute_score(data_sources, solution_strs, ground_truths, extra_infos):\n    return [len(one) for one in solution_strs]\n", score=1.5),
    *[case(id=f"verl: variables without {name}", row=Row(variables={key: one for key, one in (VERL.variables or {}).items() if key != name}), code=verl("ground_truth == data_source == solution_str"), status="failed", error="missing_input", message=f"`{name}`") for name in ("data_source", "solution_str", "ground_truth")],
    *[case(id=f"no ground truth in {inputs}: {code[:20]}", row=Row(inputs, "It is 4"), code=code, warnings=frozenset({"empty_expected"})) for inputs in ({"question": "2+2"}, {"question": "2+2", "answer": None}) for code in (verl("float(solution_str == ground_truth)"), rollout("float(completion[-1]['content'] == answer)"))],
    *[case(id=f"TRL: the ground truth is {answer!r}", row=Row({"answer": answer}, "4"), code="def reward(completions, answer):\n    return [float(c == a) for a, c in zip(answer, completions)]\n", score=0.0, warnings=frozenset({"empty_expected"})) for answer in ("", None)],
    case(id="TRL: a ground truth of a group is None", row=Row(variables={"completions": ["a", "b"], "answer": ["a", None]}), code="def reward(completions, answer):\n    return [float(c == a) for a, c in zip(answer, completions)]\n", score=0.5, warnings=frozenset({"empty_expected"})),
    case(id="a library's own time limit", code="import logging\n" + verl("logging.getLogger('m').warning('Timeout during comparison') or 0.0"), score=0.0, warnings=frozenset({"own_time_limit"})),
    case(id="TRL: the code kills its own process", code="import os\n" + trl("os.kill(os.getpid(), 9)"), status="failed", error="crashed", message="the code killed its process, or memory ran out"),
    case(id="verl: no data source", code=verl("float(data_source == 'gsm8k')"), score=0.0, warnings=frozenset({"no_data_source"})),
    case(id="TRL: a missing column", contract=Contract("rewards"), code="def reward(completions, difficulty):\n    return [len(difficulty)]\n", status="failed", error="missing_input", message="`difficulty`"),
    case(id="TRL: a column that the named function never reads", settings=EvaluatorSettings(entry="reward"), code="def reward(completions, completion_ids):\n    return [0.5 for one in completions]\n", score=0.5),
    case(id="TRL: a column that the code never reads", code="def reward(completions, completion_ids):\n    return [0.5 for one in completions]\n", score=0.5),
    case(id="verifiers: messages", code=rollout("1.0 if answer in completion[-1]['content'] else 0.0"), native=[one(1.0, "correct")], score=1.0),
    case(id="verifiers: attributes", code=rollout("completion[-1].content == 'It is 4'"), native=[one(1.0, "correct")]),
    case(id="verifiers: text", code="def correct(prompt, completion: str, answer):\n    return answer in completion\n", score=1.0),
    case(id="verifiers: state, info, task", row=Row({"prompt": "p", "info": {"a": 2}, "correct_answer": "4"}, "4"), code="def f(completion, state, info, task, **kwargs):\n    return info['a'] if state['answer'] == '4' and task == 'default' and state['prompt'][0]['content'] == 'p' else 0\n", score=2),
    case(id="verifiers: a parser", code="def f(parser, completion, answer):\n    return parser.parse_answer(completion) == 'It is ' + answer\n", score=1.0),
    case(id="verifiers: a parser of its own, a rubric", row=Row({"question": "q", "correct_answer": "4"}, "<think>so</think>\n<answer>4</answer>"), code="""
        import verifiers as vf

        parser = vf.XMLParser(["think", "answer"])

        def correct(parser, completion, answer, **kwargs) -> float:
            return 1.0 if parser.parse_answer(completion) == answer else 0.0

        rubric = vf.Rubric(funcs=[correct, parser.get_format_reward_func()], weights=[1.0, 0.5], parser=parser)
     """, native=[one(1.0, "correct"), one(1.0, "format_reward_func", weight=0.5)], score=1.5),
    case(id="verifiers: a native row", row=Row(variables={"prompt": "q", "completion": [{"role": "assistant", "content": "4"}], "answer": "4"}), code=rollout("completion[0]['content'] == answer"), score=1.0),
    case(id="verifiers: a text that is a number", code=rollout("'0.5'"), score=0.5),
    case(id="verifiers: an exception", code=rollout("1 / 0"), status="failed", error="user_exception", line=2),
    *[refused(id=f"verifiers refuses {value}", code=rollout(value)) for value in ("None", "'x'", "[1]")],
    case(id="NaN", code=rollout("float('nan')"), status="failed", error="non_finite"),
    case(id="verifiers: the rubric of a loader", row=Row({"question": "q", "correct_answer": "4"}, "<think>so</think>\n<answer>4</answer>"), code="""
        import verifiers as vf
        from verifiers.envs.integrations.textarena_env import TextArenaEnv

        def correct(parser, completion, answer, **kwargs):
            return float(parser.parse_answer(completion) == answer)

        def shape(parser, completion, answer):
            return 0.5 * correct(parser, completion, answer)

        def load_environment(split="test", *, field="answer", **kwargs):
            data = open("rows-that-are-not-there.json")
            parser = vf.XMLParser(fields=["think", field], answer_field=field)
            rubric = vf.Rubric(parser=parser)
            rubric.add_reward_func(correct)
            rubric.add_reward_func(shape, weight=0.5)
            judged = parser.get_format_reward_func()
            judged.__name__ = "judged"
            rubric.add_reward_func(judged, weight=0.2)
            return TextArenaEnv(dataset=data, parser=parser, rubric=rubric, **kwargs)
    """, score=1.45, warnings=frozenset({"entry_found_inside", "several_entries"})),
    case(id="an unused name of verifiers", code="from verifiers import JudgeRubric\n" + rollout("1")),
    case(id="main takes completion too", row=Row(variables={"completion": "a", "target": "a"}), recognised=Contract.MAIN, code="def main(completion, target):\n    return completion == target\n", score=1.0),
    case(id="a helper is not an evaluator", recognised=Contract.EVALUATE, code="def clean(completion):\n    return completion.strip()\n\ndef evaluate(inputs, outputs, trace):\n    return len(clean(outputs)) / 14\n", score=0.5),
]  # fmt: skip
