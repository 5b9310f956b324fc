"""Evaluators as people paste them from notebooks, repositories and documentation pages, and their scores.

Unless a case has its own row, the row has the output "Paris", and "Paris" is also the expected answer.
"""

from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Final

from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row

PYTHON: Final = Language.PYTHON
JAVASCRIPT: Final = Language.JAVASCRIPT
TYPESCRIPT: Final = Language.TYPESCRIPT
ROW: Final = Row({"question": "Capital of France?", "correct_answer": "Paris"}, "Paris")


@dataclass(frozen=True, slots=True)
class Pasted:
    """A program and its result.

    Attributes:
      expected: The score, a label, `skipped`, or the code of the error.
      contains: Text that the error's message or hint must contain.
    """

    id: str
    code: str
    expected: Any = 1.0
    contract: str | None = None
    language: Language = PYTHON
    entry: str | None = None
    declared: Contract = Contract.AUTO
    row: Row = ROW
    contains: str = ""
    note: str = ""
    metrics: dict[str, float] | None = None
    packages: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def evaluator(self) -> Evaluator:
        settings = EvaluatorSettings(entry=self.entry, config=self.config)
        code = dedent(self.code).lstrip("\n")
        return Evaluator(
            code, language=self.language, contract=self.declared, settings=settings, packages=self.packages
        )


PASTED: Final = [
    # Functions inside a loader
    Pasted(
        "a factory that returns its function",
        """
        def create_exact_match():
            def exact_match(outputs, reference_outputs):
                return outputs["output"] == reference_outputs["output"]
            return exact_match
        """,
        contract="langsmith",
    ),
    Pasted(
        "a factory with options",
        """
        def make_evaluator(case_sensitive: bool = False):
            def evaluate(inputs, outputs, trace):
                a, b = outputs, inputs["correct_answer"]
                return float(a == b if case_sensitive else a.lower() == b.lower())
            return evaluate
        """,
        contract="evaluate",
    ),
    Pasted(
        "a loader that returns a list",
        """
        def load_evaluators():
            def correct(run, example):
                return {"key": "correct", "score": int(run.outputs["output"] == example.outputs["output"])}

            def concise(run, example):
                return {"key": "concise", "score": int(len(run.outputs["output"]) < 3)}

            return [correct, concise]
        """,
        0.5,
        contract="langsmith",
        note="several_entries",
        metrics={"correct": 1.0, "concise": 0.0},
    ),
    Pasted(
        "a loader of what a factory with arguments makes",
        """
        from mlflow.genai.scorers import scorer

        def starts_with(letter):
            @scorer(name=f"starts with {letter}")
            def starts(outputs):
                return outputs.startswith(letter)
            return starts

        def load_scorers(letters=None):
            return [starts_with(letter) for letter in letters or "PQ"]
        """,
        0.5,
        contract="mlflow",
        note="several_entries",
    ),
    Pasted(
        "a loader of several functions of one name",
        """
        def starts_with(letter):
            def starts(run, example):
                return run.outputs["output"].startswith(letter)
            return starts

        def load_evaluators():
            return [starts_with("P"), starts_with("Q")]
        """,
        "entry_ambiguous",
        contains="`load_evaluators()` returns several evaluators with the same name, `starts`",
    ),
    Pasted(
        "one of a loader, by its name",
        """
        def load_evaluators():
            def correct(run, example):
                return run.outputs["output"] == example.outputs["output"]

            def concise(run, example):
                return len(run.outputs["output"]) < 3

            return {"correct": correct, "concise": concise}
        """,
        0.0,
        contract="langsmith",
        entry="concise",
    ),
    Pasted(
        "a class made by a factory",
        """
        def get_metric():
            from opik.evaluation.metrics import base_metric, score_result

            class Exact(base_metric.BaseMetric):
                def __init__(self, name="exact"):
                    super().__init__(name=name, track=False)

                def score(self, output, reference, **ignored):
                    return score_result.ScoreResult(name=self.name, value=float(output == reference))

            return Exact
        """,
        contract="opik",
    ),
    Pasted(
        "a wrapper around a shared scorer",
        """
        def build(scorer):
            def evaluate(inputs, outputs, trace):
                return scorer(outputs, inputs["correct_answer"])
            return evaluate

        evaluate = build(lambda a, b: 1.0 if a == b else 0.0)
        """,
        contract="evaluate",
    ),
    # Code inside a string
    Pasted(
        "code in a constant that an API call sends",
        '''
        import requests

        CODE = """
        def perform_eval(run, example):
            same = run["outputs"]["output"] == example["outputs"]["output"]
            return {"exact": int(same)}
        """

        def upload():
            requests.post("https://api.example.com/rules", json={"code_evaluators": [{"code": CODE}]})

        if __name__ == "__main__":
            upload()
        ''',
        contract="langsmith",
    ),
    Pasted(
        "code in a constant beside prints",
        """
        evaluator_code = '''
        def evaluate(ctx):
            return {"scores": [{"name": "exact", "value": 1 if ctx.observation.output == "Paris" else 0}]}
        '''
        print(evaluator_code)
        """,
        contract="langfuse",
    ),
    Pasted(
        "code in a dict of a definition",
        """
        definition = {
            "type": "user_defined_metric_python",
            "code": {
                "metric": '''
        from opik.evaluation.metrics import base_metric, score_result

        class Same(base_metric.BaseMetric):
            def score(self, output, reference, **_):
                return score_result.ScoreResult(name="same", value=1.0 if output == reference else 0.0)
        ''',
            },
        }
        """,
        contract="opik",
    ),
    Pasted(
        "a grader in a text",
        """
        grader = {
            "type": "python",
            "source": "def grade(sample, item):\\n    return 1.0 if sample['output_text'] == item['correct_answer'] else 0.0\\n",
        }
        """,
        contract="openai-grader",
    ),
    # Names that are defined elsewhere
    Pasted(
        "numpy without an import, where it is not pinned",
        """
        def perform_eval(run, example):
            return {"score": float(np.mean([1.0, 1.0]))}
        """,
        "user_exception",
        contract="langsmith",
        contains="numpy",
    ),
    Pasted(
        "names of Langfuse without an import",
        """
        def evaluate(ctx: EvaluationContext) -> EvaluationResult:
            return EvaluationResult(scores=[Score(name="exact", value=1.0 if ctx.observation.output == "Paris" else 0.0)])
        """,
        contract="langfuse",
        note="prebound",
    ),
    Pasted(
        "typing names missing in a snippet",
        """
        def exact(outputs: Dict[str, Any], reference_outputs: Optional[Dict[str, Any]] = None) -> Union[int, float]:
            return float(outputs["output"] == reference_outputs["output"])
        """,
        contract="langsmith",
        note="prebound",
    ),
    Pasted(
        "a decorator missing in a snippet",
        """
        @scorer
        def exact_match(outputs: Any, expectations: dict[str, Any]) -> bool:
            return outputs == expectations["expected_response"]
        """,
        contract="mlflow",
        declared=Contract("mlflow"),
        note="prebound",
    ),
    Pasted(
        "Feedback missing in a snippet",
        """
        from mlflow.genai.scorers import scorer

        @scorer
        def exact(outputs, expectations) -> Feedback:
            return Feedback(value=outputs == expectations["expected_response"], rationale="compared")
        """,
        contract="mlflow",
        note="prebound",
    ),
    Pasted(
        "typing names missing in a file of promptfoo",
        """
        def get_assert(output: str, context) -> Union[bool, float, Dict[str, Any]]:
            return output.startswith("P")
        """,
        contract="promptfoo",
        note="prebound",
    ),
    Pasted(
        "typing names missing for evaluate",
        """
        def evaluate(inputs: Dict[str, Any], outputs: Any, trace: Optional[dict]) -> float:
            return float(outputs == inputs["correct_answer"])
        """,
        contract="evaluate",
        note="prebound",
    ),
    Pasted(
        "Score missing in a scorer of Inspect",
        """
        from inspect_ai.scorer import scorer, accuracy

        @scorer(metrics=[accuracy()])
        def exact():
            async def score(state: TaskState, target: Target):
                return Score(value=CORRECT if state.output.completion == target.text else INCORRECT)
            return score
        """,
        contract="inspect",
        note="prebound",
    ),
    Pasted(
        "ToolCall and LLMTestCase missing for DeepEval",
        """
        from deepeval.metrics import BaseMetric

        class Exact(BaseMetric):
            def __init__(self, threshold: float = 0.5):
                self.threshold = threshold

            def measure(self, test_case: LLMTestCase) -> float:
                self.score = float(test_case.actual_output == test_case.expected_output)
                self.success = self.score >= self.threshold
                return self.score

            async def a_measure(self, test_case: LLMTestCase):
                return self.measure(test_case)

            def is_successful(self):
                return self.success
        """,
        contract="deepeval",
        note="prebound",
    ),
    # Several evaluators in one file
    Pasted(
        "two scorers of MLflow in a file",
        """
        from mlflow.genai.scorers import scorer

        @scorer
        def same(outputs, expectations):
            return outputs == expectations["expected_response"]

        @scorer
        def length(outputs):
            return len(outputs)
        """,
        3.0,
        contract="mlflow",
        note="several_entries",
    ),
    Pasted(
        "the second of two",
        """
        from mlflow.genai.scorers import scorer

        @scorer
        def same(outputs, expectations):
            return outputs == expectations["expected_response"]

        @scorer
        def length(outputs):
            return len(outputs)
        """,
        5.0,
        contract="mlflow",
        entry="length",
    ),
    Pasted(
        "two metrics of Ragas in a file",
        """
        from ragas.metrics import discrete_metric, numeric_metric

        @discrete_metric(name="same", allowed_values=["pass", "fail"])
        def same(response: str, reference: str):
            return "pass" if response == reference else "fail"

        @numeric_metric(name="brevity", allowed_values=(0, 1))
        def brevity(response: str):
            return 1.0 if len(response) < 10 else 0.0
        """,
        contract="ragas",
        note="several_entries",
    ),
    Pasted(
        "two evaluators of LangSmith's SDK in a file",
        """
        from langsmith.evaluation import evaluate as run_evaluation

        def correct(outputs: dict, reference_outputs: dict) -> bool:
            return outputs["output"] == reference_outputs["output"]

        def short(outputs: dict, reference_outputs: dict) -> bool:
            return len(outputs["output"]) < 3
        """,
        0.5,
        contract="langsmith",
        note="several_entries",
        metrics={"correct": 1.0, "short": 0.0},
    ),
    Pasted(
        "two scorers of Inspect in a file",
        """
        from inspect_ai.scorer import scorer, accuracy, mean, Score, CORRECT, INCORRECT

        @scorer(metrics=[accuracy()])
        def exact():
            async def score(state, target):
                return Score(value=CORRECT if state.output.completion == target.text else INCORRECT)
            return score

        @scorer(metrics=[mean()])
        def length():
            async def score(state, target):
                return Score(value=len(state.output.completion))
            return score
        """,
        5.0,
        contract="inspect",
        note="several_entries",
    ),
    # Clients made at import time
    Pasted(
        "OpenAI's client beside an evaluator that needs none",
        """
        from openai import OpenAI

        client = OpenAI()

        def judge(question):
            return client.chat.completions.create(model="gpt-5", messages=[]).choices[0].message.content

        def evaluate(inputs, outputs, trace):
            return float(outputs == inputs["correct_answer"])
        """,
        contract="evaluate",
    ),
    Pasted(
        "OpenAI's client that is used",
        """
        import openai

        client = openai.OpenAI(api_key="sk-…")

        def evaluate(inputs, outputs, trace):
            answer = client.chat.completions.create(model="gpt-5", messages=[])
            return float(answer.choices[0].message.content)
        """,
        "user_exception",
        contract="evaluate",
        contains="openai==",
    ),
    Pasted(
        "Anthropic's client",
        """
        import anthropic

        anthropic_client = anthropic.Anthropic()

        def exact(outputs, reference_outputs):
            return outputs["output"] == reference_outputs["output"]
        """,
        contract="langsmith",
    ),
    Pasted(
        "LangChain's model beside an evaluator that needs none",
        """
        from langchain_openai import ChatOpenAI
        from langsmith import Client, traceable, wrappers

        llm = ChatOpenAI(model="gpt-5", temperature=0)
        ls = Client()

        def exact(outputs: dict, reference_outputs: dict) -> bool:
            return outputs["output"] == reference_outputs["output"]
        """,
        contract="langsmith",
    ),
    Pasted(
        "a data set created at import time",
        """
        from langfuse import Langfuse, get_client

        langfuse = get_client()

        def evaluate(ctx):
            return {"scores": [{"name": "exact", "value": float(ctx.observation.output == "Paris")}]}
        """,
        contract="langfuse",
    ),
    Pasted(
        "dotenv and a key of the environment",
        """
        import os
        from dotenv import load_dotenv

        load_dotenv()
        API_KEY = os.environ["OPENAI_API_KEY"]

        def evaluate(inputs, outputs, trace):
            return float(outputs == inputs["correct_answer"])
        """,
        contract="evaluate",
    ),
    # Returned values
    Pasted(
        "a numpy scalar",
        """
        class float64(float):
            pass

        def evaluate(inputs, outputs, trace):
            return float64(1.0)
        """,
        contract="evaluate",
    ),
    Pasted(
        "a list of results",
        """
        def correct(outputs, reference_outputs):
            same = outputs["output"] == reference_outputs["output"]
            return [{"key": "same", "score": same}, {"key": "length", "score": len(outputs["output"])}]
        """,
        expected=3.0,
        contract="langsmith",
        metrics={"same": 1.0, "length": 5.0},
    ),
    Pasted(
        "yes and no",
        """
        from mlflow.genai import scorer

        @scorer
        def polite(outputs):
            return "yes"
        """,
        "yes",
        contract="mlflow",
    ),
    Pasted(
        "pass and fail",
        """
        from ragas.metrics import discrete_metric

        @discrete_metric(name="ok", allowed_values=["pass", "fail"])
        def ok(response):
            return "pass"
        """,
        contract="ragas",
    ),
    Pasted(
        "C, I, P and N",
        """
        from inspect_ai.scorer import scorer, Score, Target, accuracy
        from inspect_ai.solver import TaskState

        @scorer(metrics=[accuracy()])
        def partial():
            async def score(state: TaskState, target: Target) -> Score:
                return Score(value="P", answer=state.output.completion)
            return score
        """,
        0.5,
        contract="inspect",
    ),
    Pasted(
        "pass_ with an underscore",
        """
        def get_assert(output, context):
            return {"pass_": True, "score": 0.9, "reason": "fine"}
        """,
        0.9,
        contract="promptfoo",
    ),
    Pasted(
        "a score over 1 where the platform takes it",
        """
        def grade(sample, item):
            return 4.5
        """,
        4.5,
        contract="openai-grader",
        note="out_of_range",
    ),
    Pasted(
        "a score over 1 where the platform refuses it",
        """
        def handler(input, output, expected):
            return 4.5
        """,
        "invalid_result",
        contract="braintrust",
    ),
    Pasted(
        "None that means does not apply",
        """
        def handler(input, output, expected=None):
            return None
        """,
        "skipped",
        contract="braintrust",
    ),
    Pasted(
        "a dataclass of one's own",
        """
        from dataclasses import dataclass

        @dataclass
        class Result:
            score: float
            reason: str

        def evaluate(inputs, outputs, trace):
            return Result(1.0, "same")
        """,
        contract="evaluate",
    ),
    Pasted(
        "a pydantic-like model",
        """
        class Result:
            def __init__(self, **fields):
                self.__dict__.update(fields)

            def model_dump(self):
                return dict(self.__dict__)

        def evaluate(inputs, outputs, trace):
            return Result(score=1.0, reason="same")
        """,
        "invalid_result",
        contract="evaluate",
    ),
    Pasted(
        "a tuple of score and reason",
        """
        def evaluate(inputs, outputs, trace):
            return 1.0, "same"
        """,
        1.0,
        contract="evaluate",
    ),
    Pasted(
        "an async evaluator",
        """
        import asyncio

        async def evaluate(inputs, outputs, trace):
            await asyncio.sleep(0)
            return {"score": 1.0}
        """,
        contract="evaluate",
    ),
    Pasted(
        "a notebook's cell with magics and a call below",
        """
        %pip install -q langsmith
        !echo done

        def exact(outputs, reference_outputs):
            return outputs["output"] == reference_outputs["output"]
        """,
        contract="langsmith",
    ),
    Pasted(
        "a call of the platform at the end",
        """
        from langsmith import Client

        def exact(outputs, reference_outputs):
            return outputs["output"] == reference_outputs["output"]

        client = Client()
        results = client.evaluate(lambda inputs: inputs, data="my-dataset", evaluators=[exact])
        """,
        contract="langsmith",
    ),
    Pasted(
        "an experiment of Braintrust with scores inside",
        """
        from braintrust import Eval

        def exact_match(input, output, expected):
            return 1 if output == expected else 0

        Eval("Capitals", data=lambda: [{"input": "France", "expected": "Paris"}], task=lambda x: "Paris", scores=[exact_match])
        """,
        contract="braintrust",
    ),
    # JavaScript and TypeScript
    Pasted(
        "an anonymous default export",
        "export default (output, context) => output === context.vars.expected;",
        contract="promptfoo",
        language=JAVASCRIPT,
    ),
    Pasted(
        "an anonymous async default export of one object",
        "export default async ({ outputs, referenceOutputs }) => ({ key: 'same', score: outputs.output === referenceOutputs.output });",
        contract="langsmith",
        language=JAVASCRIPT,
    ),
    Pasted(
        "a typed constant",
        """
        import type { Scorer } from "autoevals";

        export const exactMatch: Scorer<string, {}> = (args) => ({
          name: "exact",
          score: args.output === args.expected ? 1 : 0,
        });
        """,
        contract="braintrust",
        language=TYPESCRIPT,
    ),
    Pasted(
        "a typed constant of the SDK",
        """
        import { EvalScorer } from "braintrust";

        export const same: EvalScorer<string, string, string> = async ({ output, expected }) => {
          return output === expected ? 1 : 0;
        };
        """,
        contract="braintrust",
        language=TYPESCRIPT,
    ),
    Pasted(
        "a promise",
        """
        function handler({ output, expected }) {
          return new Promise((resolve) => setTimeout(() => resolve(output === expected ? 1 : 0), 1));
        }
        """,
        contract="braintrust",
        language=JAVASCRIPT,
    ),
    Pasted(
        "OpenAI's client in TypeScript beside an evaluator that needs none",
        """
        import OpenAI from "openai";

        const client = new OpenAI();

        export async function judge(question: string) {
          return (await client.chat.completions.create({ model: "gpt-5", messages: [] })).choices[0];
        }

        export function evaluate(inputs: any, outputs: string, trace: unknown) {
          return outputs === inputs.correct_answer ? 1 : 0;
        }
        """,
        contract="evaluate",
        language=TYPESCRIPT,
    ),
    Pasted(
        "OpenAI's client in TypeScript that is used",
        """
        import OpenAI from "openai";

        const client = new OpenAI({ apiKey: process.env.OPENAI_API_KEY });

        export async function evaluate(inputs: any, outputs: string, trace: unknown) {
          const answer = await client.chat.completions.create({ model: "gpt-5", messages: [] });
          return Number(answer.choices[0].message.content);
        }
        """,
        "user_exception",
        contract="evaluate",
        language=TYPESCRIPT,
        contains="openai@",
    ),
    Pasted(
        "several exports of which one is named",
        """
        export const same = ({ outputs, referenceOutputs }: any) => ({ key: "same", score: outputs.output === referenceOutputs.output ? 1 : 0 });
        export const short = ({ outputs, referenceOutputs }: any) => ({ key: "short", score: outputs.output.length < 3 ? 1 : 0 });
        """,
        0.0,
        contract="langsmith",
        language=TYPESCRIPT,
        entry="short",
    ),
    Pasted(
        "several exports, all of them",
        """
        export const same = ({ outputs, referenceOutputs }: any) => ({ key: "same", score: outputs.output === referenceOutputs.output ? 1 : 0 });
        export const short = ({ outputs, referenceOutputs }: any) => ({ key: "short", score: outputs.output.length < 3 ? 1 : 0 });
        """,
        0.5,
        contract="langsmith",
        language=TYPESCRIPT,
        note="several_entries",
        metrics={"same": 1.0, "short": 0.0},
    ),
    Pasted(
        "satisfies",
        """
        type Args = { output: string; expected?: string };

        const handler = (({ output, expected }: Args) => (output === expected ? 1 : 0)) satisfies (args: Args) => number;
        """,
        contract="braintrust",
        language=TYPESCRIPT,
    ),
    Pasted(
        "module.exports of an object",
        """
        module.exports = {
          evaluate: (inputs, outputs, trace) => outputs === inputs.correct_answer ? 1 : 0,
        };
        """,
        contract="evaluate",
        language=JAVASCRIPT,
    ),
    Pasted(
        "a prompt that holds code is not an evaluator",
        """
        FEW_SHOT = '''
        def evaluate(inputs, outputs, trace):
            return 0.0
        '''

        def score_it(inputs, outputs, trace):
            return 1.0
        """,
        contract="function",
    ),
    Pasted(
        "a prompt that holds code, beside an evaluator",
        """
        FEW_SHOT = '''
        def perform_eval(run, example):
            return {"wrong": 0}
        '''

        def evaluate(inputs, outputs, trace):
            return 1.0
        """,
        contract="evaluate",
    ),
    Pasted(
        "a decorator of a client that is not pinned",
        """
        from langfuse import observe
        from langfuse.openai import openai

        @observe()
        def evaluate(inputs, outputs, trace):
            return float(outputs == inputs["correct_answer"])
        """,
        contract="evaluate",
    ),
    Pasted(
        "a model of a client that is not pinned as a base",
        """
        from langchain_core.tools import BaseTool

        class Tool(BaseTool):
            name = "tool"

        def evaluate(inputs, outputs, trace):
            return 1.0
        """,
        1.0,
        contract="evaluate",
    ),
    Pasted(
        "the AI SDK beside an evaluator that needs none",
        """
        import { generateText } from "ai";
        import { openai } from "@ai-sdk/openai";
        import "dotenv/config";

        const model = openai("gpt-5");

        export async function judge(text: string) {
          return generateText({ model, prompt: text });
        }

        export const exact = ({ outputs, referenceOutputs }: any) => ({ key: "exact", score: outputs.output === referenceOutputs.output });
        """,
        contract="langsmith",
        language=TYPESCRIPT,
        entry="exact",
    ),
    # Functions inside a loader and code inside a string, in JavaScript and TypeScript
    Pasted(
        "a factory that returns an arrow",
        """
        const norm = (text) => text.trim()
        export const createExactMatch = () => (inputs, outputs, trace) => norm(outputs) === inputs.correct_answer
        """,
        contract="evaluate",
        language=JAVASCRIPT,
        note="entry_found_inside",
    ),
    Pasted(
        "a factory with options in TypeScript",
        """
        type Options = { loose?: boolean }
        export function makeEvaluator({ loose }: Options = {}) {
          function performEval(run: any, example: any) {
            return { key: "exact", score: run.outputs.output === example.outputs.output ? 1 : 0 }
          }
          return performEval
        }
        """,
        contract="langsmith",
        language=TYPESCRIPT,
        note="entry_found_inside",
    ),
    Pasted(
        "a factory with optional options in TypeScript, beside others",
        """
        type Options = { ask: (text: string) => Promise<string> }
        export const modelScorer = (options: Options) => async (inputs: any, outputs: string, trace: any) => options.ask(outputs)
        export const exactScorer = (options?: { loose?: boolean }) => {
          return (inputs: any, outputs: string, trace: any) => outputs === inputs.correct_answer
        }
        """,
        contract="evaluate",
        language=TYPESCRIPT,
        note="entry_found_inside",
    ),
    Pasted(
        "a loader that returns an object",
        """
        function loadEvaluators() {
          const evaluate = (inputs, outputs, trace) => outputs === inputs.correct_answer
          return { evaluate }
        }
        """,
        contract="evaluate",
        language=JAVASCRIPT,
        note="entry_found_inside",
    ),
    Pasted(
        "code in a template literal that a script sends",
        """
        const code = `function evaluate(inputs, outputs, trace) {
          return outputs.split(\\`,\\`)[0] === inputs.correct_answer ? 1 : 0;
        }`;
        async function upload() { await fetch("https://api.example.com", { method: "POST", body: JSON.stringify({ code }) }); }
        """,
        contract="evaluate",
        language=JAVASCRIPT,
        note="entry_found_inside",
    ),
    Pasted(
        "two texts of which either may be meant",
        """
        const a = "function evaluate(inputs, outputs, trace) { return 1 }";
        const b = "function evaluate(inputs, outputs, trace) { return 0 }";
        """,
        "entry_not_found",
        language=JAVASCRIPT,
    ),
]
