"""Evaluators that people paste with others of their file, or that return values of many kinds."""

from typing import Final

from tests.dialects.pasted import Pasted

VALUES: Final = [
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
]
