"""Evaluators that once got a wrong score, or an error that did not explain the cause, grouped by kind.

Each kind has the evaluator that was reported, and similar ones. A case lists what the caller must get: the score, the
verdict, the reason, codes of warnings, and words in the error, its hint or the warnings.
"""

import random
from dataclasses import dataclass, field
from typing import Any, Final

PY: Final = "def evaluate(inputs, outputs, trace):\n    "
JS: Final = "export function evaluate(inputs, outputs, trace) {\n  "
ANY: Final = object()
"""Stands for a score that the case does not check."""


@dataclass(frozen=True)
class Case:
    """An evaluator, a row, and the required content of the result; `rows` are rows of a batch that must all get
    different scores.
    """

    kind: str
    code: str
    score: Any = ANY
    passed: Any = ANY
    reason: Any = ANY
    warns: str = ""
    said: str = ""
    unsaid: str = ""
    language: str = "python"
    status: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    evaluator: dict[str, Any] = field(default_factory=dict)
    batch: bool = False


def py(kind: str, body: str, score: Any = ANY, **more: Any) -> Case:
    """Return a case with a Python function that has this body."""
    return Case(kind, PY + body, score, **more)


def js(kind: str, body: str, score: Any = ANY, **more: Any) -> Case:
    """Return a case with a JavaScript function that has this body."""
    return Case(kind, JS + body + " }", score, language="javascript", **more)


def ts(kind: str, code: str, score: Any = ANY, **more: Any) -> Case:
    """Return a case with TypeScript code."""
    return Case(kind, code, score, language="typescript", **more)


BIG: Final = 2**53 + 1
TRUTH: Final = {"inputs": {"correct_answer": "a"}, "outputs": "a"}
THIRD: Final = {"evaluator": {"threshold": 0.3}}
SPAWN: Final = (
    "import multiprocessing as mp\ndef half(n):\n    return n / 2\n"
    + PY
    + "with mp.get_context('{}').Pool(1) as pool:\n"
    "        return pool.apply(half, (1,))\n"
)

CASES: Final = [
    # cases with seeds that code sets while it loads
    Case("seed", "import random\nrandom.seed(7)\n" + PY + "return random.random()", random.Random(7).random()),
    Case("seed", "from random import seed, random as draw\nseed('seven')\n" + PY + "return draw()", random.Random("seven").random()),
    Case("seed", "import random\nDRAW = random.Random(3)\n" + PY + "return DRAW.random()", random.Random(3).random()),
    Case("seed", "import random\nclass Dice:\n    def __init__(self):\n        random.seed(9)\nDICE = Dice()\n" + PY + "return random.random()", random.Random(9).random()),
    # cases with generators without a seed, which differ from row to row
    Case("generator", "import random\nDRAW = random.Random()\n" + PY + "return DRAW.random()", batch=True),
    Case("generator", "import random\n" + PY + "return random.random()", batch=True),
    Case("generator", "import random\nDRAWS = {'one': [random.Random()]}\n" + PY + "return DRAWS['one'][0].random()", batch=True),
    Case("generator", "import random\nclass Dice(random.Random):\n    pass\nDICE = Dice()\n" + PY + "return DICE.random()", batch=True),
    js("generator", "return Math.random()", batch=True),
    # cases with integers that JavaScript cannot represent exactly
    js("whole numbers", "return outputs === inputs.n", 1, warns="rounded_integer", said="$.inputs.n", row={"inputs": {"n": BIG}, "outputs": BIG - 1}),
    js("whole numbers", "return inputs.list[1].n < 0", 1, warns="rounded_integer", said="$.inputs.list[1].n", row={"inputs": {"list": [0, {"n": -BIG}]}}),
    js("whole numbers", "return trace.spans[0].start > 0", warns="rounded_integer", said="$.trace", row={"trace": {"spans": [{"name": "a", "span_id": "1", "start": BIG * 1000}]}}),
    ts("whole numbers", "export const evaluate = (inputs: any, outputs: any, trace: any) => typeof inputs.n === 'bigint' && inputs.n === 9007199254740993n", 1, row={"inputs": {"n": BIG}}, evaluator={"settings": {"integers": "bigint"}}),
    # cases with verdicts that are not bools
    *(py("verdict", f"return {{'score': 0.9, 'passed': {value}}}", 0.9, passed=passed, warns="coerced", **THIRD)
      for value, passed in (("'false'", False), ("0", False), ("'No'", False), ("' FAIL '", False), ("1", True), ("0.0", False))),
    py("verdict", "return {'score': 0.9, 'success': 'perhaps'}", status="failed", said="means neither passed nor failed", **THIRD),
    js("verdict", "return { score: 0.9, passed: 'false' }", 0.9, passed=False, warns="coerced", **THIRD),
    js("verdict", "return { score: 0.9, pass: 0 }", 0.9, passed=False, warns="coerced", **THIRD),
    py("verdict", "return {'score': 0.9, 'is_passed': False}", 0.9, passed=False, **THIRD),
    js("verdict", "return { score: 0.9, isPassed: 'no' }", 0.9, passed=False, warns="coerced", **THIRD),
    # cases with reasons that are not text
    py("reason", "return {'score': 0.5, 'reasoning': 'half of it'}", reason="half of it"),
    js("reason", "return { score: 0, reason: new RangeError('too long') }", 0, reason="RangeError: too long", warns="coerced"),
    js("reason", "try { null.x } catch (error) { return { score: 0, why: [error] } }", 0, warns="coerced", said="TypeError at $.why[0] was taken as text"),
    # cases with values that have no score
    py("shape", "return '{\"score\": 0.5}'", None, said="not its JSON as text"),
    js("shape", "return 'abc'.match(/b/)", said="for a match, return Boolean(…)"),
    js("shape", "return new Error('x')", status="failed", said="a value of type Error"),
    js("shape", "return { score: 1, at: Symbol('a') }", status="failed", said="$.at"),
    # cases with data that packages download
    *(py("data", f"raise {error}", said="send it in `data`", unsaid="\x1b")
      for error in ("LookupError('\\x1b[93mResource punkt not found. Please use the NLTK Downloader\\x1b[0m')", "OSError(\"[E050] Can't find model 'en_core_web_sm'.\")", "OSError(\"We couldn't connect to 'https://huggingface.co' to load the files\")", "type('LocalEntryNotFoundError', (FileNotFoundError,), {})('LocalEntryNotFoundError: not in the cache')")),
    py("reason", "return {'score': 0.5, 'reason': ['a', 'b']}", reason="a; b"),
    py("reason", "return {'score': 0.5, 'reason': 7}", reason="7"),
    py("reason", "return {'score': 0.5, 'reason': ('a', 'b')}", reason="a; b"),
    py("reason", "return {'score': 0.5, 'reason': {'why': 'long'}}", reason='{"why": "long"}'),
    js("reason", "return { score: 0.5, reason: ['a', 'b'] }", reason="a; b"),
    # cases that start child processes
    Case("child", SPAWN.format("spawn"), 0.5),
    Case("child", SPAWN.format("forkserver"), 0.5),
    Case("child", "import sys, subprocess\n" + PY + "return float(subprocess.run([sys.executable, '-c', 'print(0.25)'], capture_output=True, text=True).stdout)", 0.25),
    Case("child", "from concurrent.futures import ProcessPoolExecutor\ndef half(n):\n    return n / 2\n" + PY + "with ProcessPoolExecutor(1) as pool:\n        return list(pool.map(half, [1]))[0]", 0.5),
    py("program", "import subprocess; return subprocess.run(['python3', '-c', 'print(1)'], capture_output=True, text=True).stdout.strip() == '1'", 1),
    py("program", "import subprocess; return subprocess.run('echo hi | wc -c', shell=True, capture_output=True, text=True).stdout.strip() == '3'", 1),
    py("program", "import subprocess; return subprocess.run(['git', 'status']).returncode", said="no command git; it has python3, python, sh"),
    py("program", "import subprocess; return subprocess.check_call('gcc a.c', shell=True)", said="exit status 127 means that the shell did not find the command; it has python3"),
    py("program", "import subprocess; return subprocess.run(['ls'], cwd='nowhere').returncode", said="only the files that come with it", unsaid="no command"),
    py("program", "import subprocess; return subprocess.run(['node', '-v']).returncode", said="EVALUATOR_HOST_PYTHON_WITH_NODE"),
    py("program", "import subprocess; return int(subprocess.check_output(['python', '-c', 'print(1)']))", 1),
    js("program", "return require('child_process').execFileSync('node', ['-p', '1 + 1']).toString().trim() === '2'", 1),
    js("program", "return require('child_process').execSync('echo hi | wc -c').toString().trim() === '3'", 1),
    js("program", "return require('child_process').execSync('gcc a.c').length", said="the sandbox has no command gcc; it has node, sh"),
    js("program", "return require('child_process').execFileSync('git').length", said="the sandbox has no command git; it has node, sh"),
    # cases with scores that are None
    py("no score", "return {'score': None}", None, status="skipped", said="the row is skipped", unsaid="did you mean"),
    py("no score", "return {'score': None, 'reason': 'no gold'}", None, status="skipped", reason="no gold"),
    py("no score", "return None, 'no gold'", None, unsaid="did you mean the key score? The returned value has the key score"),
    js("no score", "return { score: null, reason: 'no gold' }", None, status="skipped", reason="no gold"),
    # cases with keyword-only parameters
    Case("by name", "def evaluate(*, inputs, outputs, trace=None):\n    return outputs == inputs['n']", 1, row={"inputs": {"n": 2}, "outputs": 2}),
    Case("by name", "def evaluate(inputs, *, outputs, trace):\n    return outputs == 2 and trace is None", 1, row={"outputs": 2}),
    Case("by name", "async def evaluate(*, trace, outputs, inputs):\n    return outputs == 2", 1, row={"outputs": 2}),
    Case("by name", "def evaluate(*, outputs, weight=0.5):\n    return weight * (outputs == 2)", 0.5, row={"outputs": 2}),
    # cases with hints that must fit the value
    py("hint", "return outputs.strip() == 'x'", said="take one of its fields", unsaid="write ['strip']", row={"outputs": {"text": "x"}}),
    py("hint", "return outputs.lower() == 'x'", said="take one of its items", row={"outputs": ["x"]}),
    py("hint", "return outputs.get('text') == 'x'", said="json.loads", row={"outputs": '{"text": "x"}'}),
    py("hint", "return outputs.text == 'x'", said="write ['text']", row={"outputs": {"text": "x"}}),
    js("hint", "return outputs.trim() === 'x'", said="is the name right?", row={"outputs": {"text": "x"}}),
    # cases with errors while code loads, whose messages must not mention a row
    Case("load", "const known = undefined;\nconst length = known.length;\n" + JS + "return 1 }", language="javascript", status="failed", unsaid="row"),
    Case("load", "const { a } = null;\n" + JS + "return 1 }", language="javascript", status="failed", unsaid="row"),
    Case("load", "KNOWN = None\nLENGTH = len(KNOWN)\n" + PY + "return 1", status="failed", unsaid="the row"),
    ts("load", "const known = {} as any;\nconst x: number = known.a.b;\n" + JS + "return 1 }", status="failed", unsaid="row"),
    # cases with deep nesting
    py("nesting", "import json; json.loads('[' * 100_000); return 1", said="nested too deeply"),
    py("nesting", "import json\n    a = []\n    for _ in range(100_000): a = [a]\n    return len(json.dumps(a))", said="nested too deeply"),
    py("nesting", "import copy\n    a = []\n    for _ in range(100_000): a = [a]\n    return len(copy.deepcopy(a))", status="failed"),
    py("nesting", "return evaluate(inputs, outputs, trace)", said="calls itself endlessly"),
    # cases with syntax of later Python versions
    *(Case("later syntax", code, said="set `python` to 3.12", status="failed", evaluator={"python": "3.11"})
      for code in (PY + 'return len(f"{inputs["a"]}")', "type Score = float\n" + PY + "return 1", "class Box[T]:\n    pass\n" + PY + "return 1", "def first[T](items: list[T]) -> T:\n    return items[0]\n" + PY + "return 1")),
    # cases with promises inside a result
    ts("promise", "const grade = async () => 1;\nexport function evaluate(i: any, o: any, t: any) { return { score: grade() } }", said="write `await`"),
    js("promise", "return { score: 1, parts: [Promise.resolve(1)] }", said="write `await`"),
    js("promise", "return { score: 1, reason: (async () => 'x')() }", said="write `await`"),
    Case("promise", "async def grade():\n    return 1\n" + PY + "return {'score': 1, 'more': grade()}", said="write `await`"),
    # cases that set a locale
    *(py("locale", f"import locale; locale.setlocale({category}, '{name}'); return 1", said="only the locale C.UTF-8")
      for category, name in (("locale.LC_ALL", "de_DE.UTF-8"), ("locale.LC_NUMERIC", "en_US.UTF-8"), ("locale.LC_TIME", "fr_FR"), ("locale.LC_ALL", "de"))),
    # cases that use an event loop
    Case("loop", "import asyncio\nasync def judge():\n    return 0.5\nasync def evaluate(inputs, outputs, trace):\n    return asyncio.run(judge())", said="write `await`"),
    Case("loop", "import asyncio\nasync def judge():\n    return 0.5\nasync def evaluate(inputs, outputs, trace):\n    return asyncio.get_event_loop().run_until_complete(judge())", said="write `await`"),
    Case("loop", "import asyncio\nasync def judge():\n    return 0.5\nasync def evaluate(inputs, outputs, trace):\n    with asyncio.Runner() as runner:\n        return runner.run(judge())", said="write `await`"),
    Case("loop", "import asyncio\nasync def judge():\n    return 0.5\n" + PY + "return asyncio.run(judge())", 0.5),
    # cases that read arguments of a command line
    Case("arguments", "import sys\nTEXT = sys.argv[1]\n" + PY + "return 1", said="an evaluator gets no command-line arguments"),
    Case("arguments", "import sys\n_, output, context = sys.argv\n" + PY + "return 1", said="an evaluator gets no command-line arguments"),
    Case("arguments", "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('text')\nARGS = parser.parse_args()\n" + PY + "return 1", said="an evaluator gets no command-line arguments"),
    py("arguments", "import sys; return float(sys.argv[1])", said="an evaluator gets no command-line arguments"),
    Case("arguments", "const text = process.argv[2].trim();\n" + JS + "return 1 }", language="javascript", said="an evaluator gets no command-line arguments"),
    # cases with cached functions
    Case("cache", "import functools\n@functools.lru_cache\n" + PY + "return 1", said="a cached function cannot take a dict"),
    Case("cache", "from functools import cache\n@cache\n" + PY + "return 1", said="a cached function cannot take a dict"),
    Case("cache", "import functools\n@functools.lru_cache(maxsize=None)\n" + PY + "return 1", said="a cached function cannot take a dict"),
    Case("cache", "import functools\n@functools.cache\ndef parts(row):\n    return len(row)\n" + PY + "return parts(inputs)", said="an argument of a cached function"),
    # cases with scores that rounding puts slightly outside 0..1
    py("bound", "return sum([0.1] * 3) + 0.7000000000000002", sum([0.1] * 3) + 0.7000000000000002, unsaid="outside"),
    py("bound", "return -1e-12", -1e-12, unsaid="outside"),
    py("bound", "return {'score': 1 + 1e-10, 'recall': 1.5}", 1 + 1e-10, unsaid="outside"),
    py("bound", "return 1 + 1e-6", warns="out_of_range"),
    js("bound", "return 0.1 + 0.2 + 0.7000000000000001", 0.1 + 0.2 + 0.7000000000000001, unsaid="outside"),
    # cases with failed imports whose error the code catches
    py("caught import", "try:\n        import numpy\n    except ImportError:\n        return 0.0\n    return 1.0", 0, warns="missing_import", said="add numpy=="),
    py("caught import", "import contextlib\n    with contextlib.suppress(ImportError):\n        import pandas\n        return 1.0\n    return 0.0", 0, warns="missing_import", said="add pandas=="),
    py("caught import", "import importlib\n    try:\n        importlib.import_module('yaml')\n    except Exception:\n        return 0.0", 0, warns="missing_import", said="add pyyaml=="),
    js("caught import", "try { return require('lodash').size(outputs) } catch { return 0 }", 0, warns="missing_import", said="add lodash"),
    Case("caught import", "export async function evaluate(inputs, outputs, trace) {\n  const found = await import('lodash').catch(() => null);\n  return found ? 1 : 0 }", 0, language="javascript", warns="missing_import", said="add lodash"),
    # cases with settings for legacy code, whose function reads `app_params`
    *(Case("parameters", f"def evaluate(app_params, inputs, output, correct_answer):\n    return {read}", score, warns=warns, evaluator={"settings": {"config": config}}, row=TRUTH)
      for read, score, warns, config in (
          ("1.0 if not app_params.get('words') else 0.5", 1, "missing_param", {}),
          ("1.0 if not app_params.get('words') else 0.5", 0.5, "", {"words": "a"}),
          ("float(app_params.get('scale', 0.25))", 0.25, "missing_param", {}),
          ("float('words' in app_params)", 0, "missing_param", {}),
      )),
    Case("parameters", "export function evaluate(appParams, inputs, output, correctAnswer) { return appParams.words ? 0.5 : 1 }", 1, language="javascript", warns="missing_param", row=TRUTH),
    # cases with lists of spans
    *(py("spans", "return len(trace['spans']) / 10", score, warns="trace_converted", row={"trace": spans})
      for spans, score in (
          ([{"name": "a", "span_id": "1"}, {"name": "b", "span_id": "2"}], 0.2),
          ([{"name": "a", "spanId": "1"}, {"name": "b", "spanId": "2", "parentSpanId": "1"}], 0.1),
          ([{"name": "a", "id": "1"}], 0.1),
      )),
    js("spans", "return Object.keys(trace.spans).length / 10", 0.1, warns="trace_converted", row={"trace": [{"name": "a", "span_id": "1"}]}),
    # cases with names that snippets use without importing them
    Case("prebound", "class Grade(TypedDict):\n    why: Annotated[str, 'x']\n\ndef same(outputs: dict, reference_outputs: dict) -> bool:\n    return outputs == reference_outputs\n", 1, warns="prebound", row={"inputs": {"correct_answer": "a"}, "outputs": "a"}),
    Case("prebound", "def evaluate(inputs: Dict[str, Any], outputs: Optional[str], trace) -> Union[int, float]:\n    return 1\n", 1, warns="prebound"),
    Case("prebound", "KIND = Literal['a', 'b']\n" + PY + "return 1", 1, warns="prebound"),
    Case("prebound", "@dataclass\nclass Grade:\n    score: float = 0.5\n" + PY + "return Grade().score", 0.5, warns="prebound"),
    # cases with private functions that are the only function of a file
    *(Case("private", f"def {head}:\n    return {{'key': 'right', 'score': int(outputs == reference_outputs)}}\n", 1, row={"inputs": {"correct_answer": "a"}, "outputs": "a"})
      for head in ("_right(outputs, reference_outputs)", "__right(inputs, outputs, reference_outputs)", "_right(*, outputs, reference_outputs)", "_right(outputs: dict, reference_outputs: dict) -> dict")),
    # cases with the user's own files, imported from JavaScript
    *(Case("own file", f"{line}\n" + JS + "return 1 }", language=language, said="is a file of yours", status="failed")
      for line, language in (("const read = require('./read_answer');", "javascript"), ("import { read } from './lib/read';", "javascript"), ("export * from './more.ts';", "typescript"))),
    Case("own file", "import * as lib from '../lib';\nexport const kept = lib;\n" + JS + "return 1 }", 1, language="typescript"),
    # cases with the fields of a platform's row, without the object around them
    Case("flat row", "from opik.evaluation.metrics import base_metric, score_result\nclass Same(base_metric.BaseMetric):\n    def score(self, output, reference, **more):\n        return score_result.ScoreResult(name='same', value=float(output == reference))\n", 1, row={"variables": {"output": "a", "reference": "a"}}),
    Case("flat row", "import weave\n@weave.op\ndef same(output, wanted):\n    return {'same': output == wanted}\n", 1, row={"variables": {"output": "a", "wanted": "a"}}),
    Case("flat row", "from phoenix.evals import create_evaluator\n@create_evaluator(name='brief')\ndef brief(summary):\n    return float(len(summary) < 9)\n", 1, row={"variables": {"summary": "short"}}),
    Case("flat row", "from deepeval.metrics import BaseMetric\nclass Brief(BaseMetric):\n    threshold = 0.5\n    def measure(self, case):\n        self.score = float(len(case.actual_output) < 9)\n        return self.score\n    def is_successful(self):\n        return self.score > 0\n", 1, warns="measure_called", row={"variables": {"input": "q", "actual_output": "short"}}),
    # cases with names of a platform's package that only other functions use
    *(Case("placeholder", code, 1, row={"inputs": {"correct_answer": "4"}, "outputs": "4"})
      for code in (
          "from mlflow.genai.scorers import Correctness, scorer\n@scorer\ndef short(outputs):\n    return len(outputs) < 9\ndef judges():\n    return [Correctness()]\n",
          "from inspect_ai import Task, task\nfrom inspect_ai.scorer import Score, accuracy, scorer\nfrom inspect_ai.solver import basic_agent\n@scorer(metrics=[accuracy()])\ndef ends():\n    async def score(state, target):\n        return Score(value='C' if state.output.completion.endswith(target.text) else 'I')\n    return score\n@task\ndef demo():\n    return Task(solver=basic_agent(), scorer=ends())\n",
          "from ragas.metrics import AspectCritic, numeric_metric\ncritic = AspectCritic(name='kind', definition='is it kind?')\n@numeric_metric(name='all', allowed_values=(0.0, 1.0))\ndef every(response):\n    return 1.0\n",
      )),
    Case("placeholder", "from mlflow.genai.scorers import Safety, scorer\n@scorer\ndef safe(outputs):\n    return Safety()(outputs=outputs)\n", said="mlflow==", status="failed", row={"inputs": {}, "outputs": "4"}),
    # cases with classes that a platform's JavaScript code uses without importing them
    *(Case("result class", f"const exec_evaluation = {function};\n", 0.5, language="javascript", reason="half", row={"variables": {"evaluate_dataset_fields": {}, "evaluate_target_output_fields": {}}})
      for function in ("function (turn) { return new EvalOutput(0.5, 'half'); }", "(turn) => ({ score: 0.5, reason: 'half' })", "async function (turn) { return new EvalOutput(0.5, 'half'); }", "function (turn) { const made = new EvalOutput(0, 'half'); made.score = 0.5; return made; }")),
]  # fmt: skip
