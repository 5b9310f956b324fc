"""Evaluators that people paste without the imports, clients or packages that their file had."""

from typing import Final

from evaluator_host.types.evaluator import Contract
from tests.dialects.pasted import TYPESCRIPT, Pasted

NAMES: Final = [
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
    # Clients that are not pinned
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
]
