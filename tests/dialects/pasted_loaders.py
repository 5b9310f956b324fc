"""Evaluators that people paste inside a function that loads or makes them, or inside a string."""

from typing import Final

from tests.dialects.pasted import JAVASCRIPT, TYPESCRIPT, Pasted

LOADERS: Final = [
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
