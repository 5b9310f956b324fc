"""Scorers of Braintrust in Python, TypeScript and JavaScript, and the scores that Braintrust stores.

The expected results follow braintrust 0.48.1 (PyPI) and 3.35.0 (npm).
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from tests.dialects.cases import NativeCase

ROW = Row(variables={"input": {"q": "2+2"}, "output": "4", "expected": "4", "metadata": {"lang": "en"}})
FLAT = Row({"input": {"q": "2+2"}, "output": "4", "expected": "4", "metadata": {"lang": "en"}}, "4")
OURS = Row({"q": "2+2", "correct_answer": "4"}, "4")

case = partial(NativeCase, row=ROW, recognised=Contract("braintrust"))
javascript = partial(case, language=Language.JAVASCRIPT)
typescript = partial(case, language=Language.TYPESCRIPT)
refused = partial(case, status="failed", error="invalid_result")
skipped = partial(case, status="skipped", score=None, warnings=frozenset({"skipped"}))

EVAL = """import {{ Eval }} from "braintrust";
import {{ Levenshtein }} from "autoevals";
type Row = {{ output: string; expected?: string }};
const near = (scale: number) => ({{ output }}: Row) => ({{ name: "near", score: output.length / (2 * scale) }});
const more = [near(2)];
function exact({{ output, expected }}: Row) {{
  return output === expected ? 1 : 0;
}}
Eval<string, string>("sums", {{
  data: () => [{{ input: "2+2", expected: "4" }}],
  task: async (input: string) => input,
  scores: [{}],
}});
"""

MADE = """import {{ Eval }} from "braintrust";
const has = (name) => async ({{ output }}) => ({{ name, score: "a bug, a note".includes(name) && output ? 1 : 0 }});
const bug = has("bug");
const priority = has("priority");
const both = [bug, priority];
Eval("x", {{ data: () => [{{ input: 1, scores: 2 }}], task: async (input) => input, scores: {} }});
"""

EVALITE = """import {{ openai }} from "@ai-sdk/openai";
import {{ createScorer, evalite, type Evalite }} from "evalite";
import {{ wrapAISDKModel }} from "evalite/ai-sdk";

export const model = wrapAISDKModel(openai("gpt-4o-mini"));
const same = createScorer<string, string>({{
  name: "Same",
  scorer: ({{ output, expected }}) => (output === expected ? 1 : 0),
}});
const short = {{ name: "Short", scorer: async ({{ output }}) => ({{ score: output.length < 3 ? 0.5 : 0, metadata: {{ low: true }} }}) }};
evalite<string, string>("sums", {{ data: async () => [], task: async (input) => input, scorers: {} }});
"""

AXIOM = """import { Eval } from "axiom/ai/evals";
import { Scorer } from "axiom/ai/evals/scorers";
import { tool } from "ai";
import { z } from "zod";

const tools = { look: tool({ inputSchema: z.object({}), execute: async () => 1 }) };
const same = Scorer("same", ({ output, expected }: { output: string; expected: string }) => output === expected);
const half = Scorer("half", () => ({ score: 0.5, metadata: { a: 1 } }));
Eval("sums", { capability: "sums", data: [], task: async ({ input }) => input, scorers: [same, half] });
"""

JUDGES = """import { createJudge, describeEval, createHarness, type JudgeContext } from "vitest-evals";

const harness = createHarness({ run: async () => "4" });
export const Same = createJudge("Same", ({ output, metadata }: JudgeContext) => ({ score: output === metadata.wanted ? 1 : 0 }));
export const Half = createJudge("Half", async () => 0.5);
describeEval("sums", { harness, judges: [Same, Half] }, (it) => it("adds", () => {}));
"""

MASTRA = """import { createScorer } from "@mastra/core/evals";
import { getAssistantMessageFromRunOutput as said } from "@mastra/evals/scorers/utils";
import {
  createToxicityScorer,
} from "@mastra/evals/scorers/prebuilt";

export const same = createScorer({ id: "same", description: "as the truth", type: "agent" })
  .preprocess(({ run }) => ({ text: said(run.output), truth: run.groundTruth }))
  .analyze(({ results }) => results.preprocessStepResult.text === results.preprocessStepResult.truth)
  .generateScore(({ results }) => (results.analyzeStepResult ? 1 : 0))
  .generateReason(({ score }) => `scored ${score}`);
export const polite = createScorer({ id: "polite", judge: { model: "openai/gpt-4o" } })
  .analyze({ description: "is it polite?", createPrompt: ({ run }) => run.output })
  .generateScore(({ results }) => results.analyzeStepResult);
export const toxic = createToxicityScorer({ model: "openai/gpt-4o" });
"""
MESSAGES = Row(
    variables={
        "input": "2+2",
        "output": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": {"format": 2, "parts": [{"type": "text", "text": "4"}]}}],
        "groundTruth": "4",
    }
)  # fmt: skip
TALK = Row(
    variables={
        "input": {"inputMessages": [{"role": "user", "content": "2+2"}]},
        "output": [{"role": "assistant", "content": {"format": 2, "content": "4", "parts": [], "toolInvocations": [{"toolName": "sum", "toolCallId": "1", "state": "result"}]}}],
    }
)  # fmt: skip


def one(score: Any, name: str = "handler", **more: Any) -> dict[str, Any]:
    """Return a single score in the form that Braintrust stores."""
    return {"name": name, "score": score, **more}


def returns(value: str) -> str:
    """Return the code of a scorer that returns this expression."""
    return f"def handler(input, output, expected, metadata):\n    return {value}\n"


TOOLS = """import { createScorer } from "@mastra/core/evals";
import { extractAgentResponseMessages, extractInputMessages, extractToolCalls } from "@mastra/evals/scorers/utils";

export const all = createScorer({ id: "all", type: "agent" }).generateScore(({ run }) => {
  const told = [extractInputMessages(run.input), extractAgentResponseMessages(run.output), extractToolCalls(run.output).tools];
  return JSON.stringify(told) === '[["2+2"],["4"],["sum"]]' ? 1 : 0;
});
"""

NOT_SENT = """import {{ {0} }} from "{1}";
import {{ Factuality }} from "~/server/factuality";

{0}("sums", {{
  data: () => [], task: async (input) => input,
  {2}: [function short({{ output }}) {{ return output.length < 3 ? 1 : 0; }}, Factuality],
}});
"""

CAUGHT = """import { createScorer } from "@mastra/core/evals";
import { getReasoningFromRunOutput } from "@mastra/evals/scorers/utils";

function thought(output) {
  try {
    return getReasoningFromRunOutput(output);
  } catch {
    return "";
  }
}
export const silent = createScorer({ id: "silent" }).generateScore(({ run }) => (thought(run.output) === "" ? 1 : 0));
"""


CASES = [
    case(id="number", code=returns("1.0 if output == expected else 0.0"), native=[one(1.0)], score=1.0, metrics={"score": 1.0, "handler": 1.0}),
    case(id="bool", code="def handler(input, output, expected, **kwargs):\n    return output == expected and 'trace' in kwargs\n", native=[one(True)], score=1.0, passed=True),
    case(id="some of the values", code="def handler(output, *, metadata):\n    return metadata['lang'] == 'en'\n", native=[one(True)]),
    case(id="a parameter with another name gets the next value", code="def handler(output, question, answer):\n    return question == {'q': '2+2'} and answer == output\n", contract=Contract("braintrust"), native=[one(True)]),
    case(id="an object", code=returns("{'score': 0.5, 'metadata': {'why': 'half'}}"), native=[one(0.5, metadata={"why": "half"})]),
    case(id="an object with a name", code=returns("{'name': 'close', 'score': 0.5}"), native=[one(0.5, "close")]),
    case(id="a list", code=returns("[{'name': 'a', 'score': 1}, {'name': 'b', 'score': None}]"), native=[one(1, "a"), one(None, "b")], score=1, metrics={"score": 1, "a": 1}),
    case(id="declared contract: the only function", contract=Contract("braintrust"), code="def quality(input, output, expected):\n    return [{'name': 'a', 'score': output == expected}]\n", native=[one(True, "a")], score=1),
    typescript(id="declared contract: the only exported function", contract=Contract("braintrust"), code="const same = (a: string, b: string) => a === b;\nexport async function quality({ output, expected }: { output: string; expected: string }) { return [{ name: 'a', score: same(output, expected) ? 1 : 0 }]; }\n", native=[one(1, "a")], score=1),
    typescript(id="declared contract: several scorers of a file without imports", contract=Contract("braintrust"), code="const norm = (text: string) => text.trim();\nexport const exact_match = ({ output, expected }: any) => ({ name: 'exact_match', score: norm(output) === expected ? 1 : 0 });\nexport function brevity({ output }: { output: string }) { return { name: 'brevity', score: 0.5, metadata: { limit: 2 } }; }\n", native=[one(0.5, "brevity", metadata={"limit": 2}), one(1, "exact_match")], score=0.75, metrics={"brevity": 0.5, "exact_match": 1.0}, warnings=frozenset({"several_entries"})),
    case(id="declared contract: several functions", contract=Contract("braintrust"), code="def a(output):\n    return 1\ndef b(output):\n    return 1\n", recognised=None, status="failed", error="entry_not_found", message="it defines a, b"),
    case(id="a list of scores", code=returns("[{'name': 'a', 'score': 1}, {'name': 'b', 'score': 0.5}]"), native=[one(1, "a"), one(0.5, "b")], score=0.75, metrics={"score": 0.75, "a": 1, "b": 0.5}, warnings=frozenset({"several_scores"})),
    case(id="a list with a chosen score", settings=EvaluatorSettings(score_output="b"), code=returns("[{'name': 'a', 'score': 1}, {'name': 'b', 'score': 0.5}]"), score=0.5),
    skipped(id="a list, of which the chosen score is None", settings=EvaluatorSettings(score_output="b"), code=returns("[{'name': 'a', 'score': 1}, {'name': 'b', 'score': None}]"), native=[one(1, "a"), one(None, "b")], metrics={"a": 1}),
    refused(id="a list without the chosen score", settings=EvaluatorSettings(score_output="c"), code=returns("[{'name': 'a', 'score': 1}, {'name': 'b', 'score': None}]"), native=[one(1, "a"), one(None, "b")], message="name one of its scores: 'a', 'b'"),
    case(id="two scores of the same name", code=returns("[{'name': 'a', 'score': 1}, {'name': 'a', 'score': 0}]"), native=[one(1, "a"), one(0, "a")], score=1, metrics={"score": 1, "a": 1}, warnings=frozenset({"duplicate_metric"})),
    case(id="a generator", code="def handler(output):\n    yield {'name': 'a', 'score': 0.25}\n", native=[one(0.25, "a")]),
    case(id="Score of the package", code="from braintrust import Score\n\ndef handler(output):\n    return [Score('a', 0.9, metadata={'d': 1}), Score(name='b')]\n", native=[one(0.9, "a", metadata={"d": 1}), one(None, "b")], score=0.9),
    case(id="a class", code=returns("{'name': 'tone', 'id': 'kind', 'label': 'Kind'}"), native=[{"name": "tone", "id": "kind", "label": "Kind"}], score=None, label="Kind"),
    case(id="a coroutine", code="async def handler(output):\n    return 1\n", native=[one(1)]),
    skipped(id="None is skipped", code=returns("None"), native=[one(None)]),
    skipped(id="None for all scores", code=returns("[{'name': 'a', 'score': None}]"), native=[one(None, "a")]),
    refused(id="no score", code=returns("{'name': 'exact'}"), message="has no `score`; give it a number"),
    *[refused(id=f"refuses {value}", code=returns(value)) for value in ("1.5", "-0.1", "'1'", "[1]", "[{'score': 1}]", "{'score': 2}", "{'score': '1'}", "{'a': 1}", "object()")],
    case(id="Score over 1", code="from braintrust import Score\n\ndef handler(output):\n    return Score('a', 1.5)\n", status="failed", error="user_exception", message="between 0 and 1"),
    case(id="scores of a package", recognised=None, code="from autoevals import Battle, Factuality\nfrom braintrust import Eval\n\nasync def main():\n    await Eval('p', data=[], task=str, scores=[Factuality, Battle.partial(instructions='which?')])\n", status="failed", error="entry_not_found", message="the scores of `Eval` come from a package (Factuality, Battle)"),
    case(id="scorers of a package beside one in the code", code="from autoevals import Levenshtein\nfrom braintrust import Eval\n\ndef exact(input, output, expected):\n    return output == expected\n\nEval('p', data=[], task=str, scores=[Levenshtein, exact])\n", native=[one(True, "exact")], warnings=frozenset({"entry_left_out"})),
    case(id="scorers of a package beside several in the code", code="from autoevals import Levenshtein\nfrom braintrust import Eval\n\ndef exact(input, output, expected):\n    return output == expected\n\ndef half(output):\n    return 0.5\n\nEval('p', data=[], task=str, scores=[exact, half, Levenshtein, lambda output: 0])\n", native=[one(True, "exact"), one(0.5, "half")], score=0.75, warnings=frozenset({"entry_left_out", "several_entries"})),
    case(id="scorers that the code registers", code="import braintrust\n\nproject = braintrust.projects.create(name='p')\n\ndef exact(input, output, expected, metadata):\n    return output == expected\n\ndef half(input, output, expected, metadata):\n    return exact(input, output, expected, metadata) / 2\n\nproject.scorers.create(name='Exact', handler=exact)\nproject.scorers.create(name='Half', handler=half)\nproject.scorers.create(name='Judge', messages=[], model='m')\n", native=[one(True, "exact"), one(0.5, "half")], score=0.75, warnings=frozenset({"entry_left_out", "several_entries"})),
    case(id="a score of an Eval beside a function called handler", code="from braintrust import Eval\n\ndef handler(output):\n    return 0\n\ndef exact(output, expected):\n    return output == expected\n\nEval('p', data=[], task=handler, scores=[exact])\n", native=[one(True, "exact")], score=1.0, passed=True),
    case(id="a score without a name", recognised=None, code="from braintrust import Eval\n\nEval('p', data=[], task=str, scores=[lambda output: 0])\n", status="failed", error="entry_not_found", message="`Eval` scores with the expression in line 3"),
    case(id="NaN", code=returns("float('nan')"), status="failed", error="non_finite"),
    case(id="an exception", code=returns("metadata['missing']"), status="failed", error="user_exception", line=2),
    case(id="an unused name of the package", code="from braintrust import prompt\n\ndef handler(output):\n    return 1\n"),
    case(id="a row in the host's form", row=OURS, code=returns("{'score': output == expected, 'metadata': input}"), native=[one(True, metadata={"q": "2+2"})]),
    case(id="a helper with that name is not an evaluator", row=OURS, recognised=Contract.EVALUATE, code="def handler(output):\n    return 1\n\ndef evaluate(inputs, outputs, trace):\n    return handler(outputs) / 2\n", native=[], score=0.5),
    javascript(id="JavaScript: destructured", code="function handler({ input, output, expected }) { return output === expected ? 1 : 0 }", native=[one(1)]),
    javascript(id="JavaScript: one object, a promise", code="const handler = async (args) => ({ name: 'same', score: args.output === args.expected })", native=[one(True, "same")]),
    javascript(id="JavaScript: null is skipped", code="function handler({ output }) { return null }", status="skipped", native=[one(None)]),
    javascript(id="JavaScript: over 1", code="function handler({ output }) { return 2 }", status="failed", error="invalid_result"),
    case(id="a row with columns", row=FLAT, code="def handler(input, output, expected, metadata):\n    return input == {'q': '2+2'} and expected == output and metadata == {'lang': 'en'}\n", native=[one(True)]),
    javascript(id="JavaScript: a row with columns", row=FLAT, code="const handler = ({ input, output, expected, metadata }) => input.q === '2+2' && expected === output && metadata.lang === 'en'", native=[one(True)]),
    javascript(id="JavaScript: missing is undefined", row=Row({"q": "2+2"}, "4"), code="const handler = ({ output, expected = '4', trace, id }) => output === expected && trace === undefined && id === undefined", native=[one(True)]),
    javascript(id="JavaScript: null is null", row=Row({"q": "2+2", "correct_answer": None}, "4"), code="const handler = ({ expected = '4' }) => expected === null", native=[one(True)]),
    typescript(id="Eval: functions, an import that is not pinned, and a scorer without a name", code=EVAL.format("exact, Levenshtein, /* a */ ({ output }: Row) => 0, near(1), /* b */"), native=[one(1, "exact"), one(0, "scorer_2"), one(0.5, "near")], score=0.5, metrics={"exact": 1.0, "scorer_2": 0.0, "near": 0.5}, warnings=frozenset({"entry_left_out"})),
    typescript(id="Eval: only scorers without a name", code=EVAL.format("async ({ output }: Row) => ({ name: 'half', score: 0.5 })"), native=[one(0.5, "half")], score=0.5),
    typescript(id="Eval: the contract is declared", code=EVAL.format("exact, near(1)"), contract=Contract("braintrust"), native=[one(1, "exact"), one(0.5, "near")], score=0.75),
    typescript(id="Eval: only an import that is not pinned", recognised=None, code=EVAL.format("Levenshtein"), status="failed", error="load_error", message="Cannot find module 'autoevals'"),
    javascript(id="JavaScript: Eval: only an import that is not pinned", recognised=None, code="import { Eval } from 'braintrust';\nimport { Levenshtein } from 'autoevals';\nEval('sums', { data: () => [], task: (input) => input, scores: [Levenshtein] });\n", status="failed", error="load_error", message="Cannot find module 'autoevals'"),
    typescript(id="Eval: a spread list", code=EVAL.format("...more, exact"), native=[one(0.25, "near"), one(1, "exact")], score=0.625, metrics={"near": 0.25, "exact": 1.0}, warnings=frozenset({"several_entries"})),
    typescript(id="Eval: the scorers are in a variable", code=EVAL.replace("[{}]", "all").format() + "const all = [exact];\n", native=[one(1, "exact")], score=1),
    typescript(id="Eval: two functions of one factory", code=MADE.format("[bug, priority, has('note')]"), native=[one(1, "bug"), one(0, "priority"), one(1, "note")], score=2 / 3, metrics={"bug": 1.0, "priority": 0.0, "note": 1.0}, warnings=frozenset({"several_entries"})),
    javascript(id="JavaScript: Eval: two functions of one factory", code=MADE.format("[bug, priority]"), native=[one(1, "bug"), one(0, "priority")], score=0.5, metrics={"bug": 1.0, "priority": 0.0}, warnings=frozenset({"several_entries"})),
    typescript(id="Eval: a scorer without a name, by the name that it gets", code=MADE.format("[bug, has('priority')]"), settings=EvaluatorSettings(entry="scorer_1"), native=[one(0, "priority")], score=0),
    typescript(id="Eval: another list, spread", code=MADE.format("[...both] as any"), native=[one(1, "bug"), one(0, "priority")], score=0.5, metrics={"bug": 1.0, "priority": 0.0}, warnings=frozenset({"several_entries"})),
    typescript(id="Eval: two joined lists", code=MADE.format("[bug].concat([priority])"), native=[one(1, "bug"), one(0, "priority")], score=0.5, metrics={"bug": 1.0, "priority": 0.0}, warnings=frozenset({"several_entries"})),
    typescript(id="Eval: a list that the code makes", code=MADE.format("['bug', 'priority'].map(has)"), native=[one(1, "bug"), one(0, "priority")], score=0.5, metrics={"bug": 1.0, "priority": 0.0}, warnings=frozenset({"several_entries"})),
    typescript(id="Eval: in a function, with options of its own", code=MADE.format("[]").split("Eval(")[0] + "const options = { scores: both };\nasync function run() { await Eval('x', options); }\nvoid run();\n", native=[one(1, "bug"), one(0, "priority")], score=0.5, metrics={"bug": 1.0, "priority": 0.0}, warnings=frozenset({"several_entries"})),
    typescript(id="Eval: called only after the code has loaded", code=MADE.format("[]").split("Eval(")[0] + "const half = ({ output }) => 0.5;\nasync function run() { await new Promise((done) => setTimeout(done, 5)); await Eval('x', { scores: [bug].concat(half) }); }\nrun();\n", score=0.5, warnings=frozenset({"entry_left_out"})),
    typescript(id="evalite: the result of createScorer, and an object", code=EVALITE.format("[same, short]"), native=[one(1, "Same"), one(0.5, "Short", metadata={"low": True})], score=0.75, warnings=frozenset({"several_entries"})),
    typescript(id="evalite: the scorers are in a variable", code=EVALITE.replace("{}", "own", 1).format() + "const own = [short];\n", native=[one(0.5, "Short", metadata={"low": True})], score=0.5),
    typescript(id="evalite: an experimental name", code=EVALITE.replace("evalite<string, string>(", "evalite.experimental_skip<string, string>(").format("[same]"), native=[one(1, "Same")], score=1),
    typescript(id="evalite: a scorer that needs a package, beside another", code=EVALITE.replace("evalite<string", "import {{ ask }} from 'ask-a-model';\nconst judge = ask({{}});\nconst asked = createScorer({{ name: 'Asked', scorer: ({{ output }}) => judge(output) }});\nevalite<string", 1).format("[same, asked]"), native=[one(1, "Same")], score=1, warnings=frozenset({"entry_left_out", "missing_import"})),
    typescript(id="Axiom: scorers of an Eval", code=AXIOM, native=[one(True, "same"), one(0.5, "half", metadata={"a": 1})], score=0.75, warnings=frozenset({"several_entries"})),
    typescript(id="vitest-evals: judges", row=Row(variables={"input": "2+2", "output": "4", "metadata": {"wanted": "4"}}), code=JUDGES, native=[one(1, "Same"), one(0.5, "Half")], score=0.75, warnings=frozenset({"several_entries"})),
    typescript(id="Mastra: steps that run code, and a step that asks a model", row=MESSAGES, code=MASTRA, native=[one(1, "same", metadata={"reason": "scored 1"})], score=1, warnings=frozenset({"several_entries", "entry_failed"})),
    typescript(id="Mastra: only a step that asks a model", row=MESSAGES, code=MASTRA, settings=EvaluatorSettings(entry="polite"), status="failed", error="user_exception", message="polite asks a model in analyze"),
    typescript(id="Mastra: its functions for messages", row=TALK, code=TOOLS, score=1),
    typescript(id="Mastra: a scorer of a package that is not pinned", row=MESSAGES, code=MASTRA, settings=EvaluatorSettings(entry="toxic"), status="failed", error="user_exception", message="@mastra/evals"),
    typescript(id="Mastra: only scorers of a package that is not pinned", row=MESSAGES, code=MASTRA.split("export const same", maxsplit=1)[0] + "export const toxic = createToxicityScorer({});\nexport const other = createToxicityScorer({});\n", status="failed", error="user_exception", message="to `packages`"),
    typescript(id="Mastra: a function that is not here, and a caught error", row=MESSAGES, code=CAUGHT, score=1, warnings=frozenset({"missing_import"})),
    typescript(id="evalite: a scorer of a file that was not sent", code=NOT_SENT.format("evalite", "evalite", "scorers"), score=1, warnings=frozenset({"entry_failed"})),
    typescript(id="Eval: a scorer of a file that was not sent", code=NOT_SENT.format("Eval", "braintrust", "scores"), score=1, warnings=frozenset({"entry_failed"})),
    typescript(id="Eval: a scorer with its own name for its score", code=MADE.format("[bug, ({ output }) => ({ name: 'bug', score: 0 })]"), score=0.5, metrics={"bug": 1.0, "scorer_1": 0.0}),
    typescript(id="an import of types only", code="import type { Score } from 'autoevals';\nconst plain = (text: string) => text.trim();\nexport function exact({ output, expected }: { output: string; expected?: string }): Score {\n  return { name: 'same', score: plain(output) === expected ? 1 : 0 };\n}\n", native=[one(1, "same")], score=1),
    typescript(id="an import of types only: a score over 1", code="import type { Score } from 'autoevals';\nexport const exact = ({ output }: { output: string }): Score => ({ name: 'same', score: 2 });\n", status="failed", error="invalid_result"),
    case(id="TypeScript", language=Language.TYPESCRIPT, row=OURS, code="export function handler({ output, expected }: { output: string; expected: string }): { score: number } {\n  return { score: output === expected ? 1 : 0 };\n}", native=[one(1)]),
]  # fmt: skip
