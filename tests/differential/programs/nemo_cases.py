"""Evaluations for NeMo Evaluator, which run with the real package, and in every way in which this project can run them.

`cases(model)` returns the arguments of `Evaluator().run_sync` for each case, by name; `model` is the address of the
model server.
"""

import asyncio
import enum
from typing import Any

from nemo_evaluator_sdk import (
    BLEUMetric,
    ExactMatchMetric,
    F1Metric,
    FieldMapping,
    GenericAgent,
    InferenceParams,
    LLMJudgeMetric,
    MetricInput,
    MetricOutput,
    MetricOutputSpec,
    MetricResult,
    Model,
    NatAgentConfig,
    NemoAgentToolkitAgent,
    NumberCheckMetric,
    RangeScore,
    ReasoningParams,
    ROUGEMetric,
    RunConfig,
    RunConfigOnline,
    RunConfigOnlineModel,
    StringCheckMetric,
    ToolCallingMetric,
)
from nemo_evaluator_sdk.values import JSONScoreParser, MetricDiagnostic, RegexScoreParser, Rubric, RubricScore
from pydantic import BaseModel


def result(**values: Any) -> MetricResult:
    return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in values.items()])


class Kinds:
    """A metric that returns every kind of output, not in the declared order, and diagnostics."""

    type = "kinds"

    def output_spec(self):
        return [
            MetricOutputSpec.boolean("right"),
            MetricOutputSpec.discrete_score("words", "How many"),
            MetricOutputSpec.continuous_score("share"),
            MetricOutputSpec.label("tone"),
        ]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        text = metric_input.candidate.output_text or ""
        words = text.split()
        made = result(
            tone="long" if len(words) > 2 else "short", share=len(words) / 7, words=len(words), right="a" in words
        )
        return MetricResult(
            outputs=made.outputs, diagnostics=[MetricDiagnostic(message=text or "none", details={"n": len(words)})]
        )


class Given:
    """A metric whose output is one column of the row, with any value."""

    def __init__(self, kind: str) -> None:
        self.type = "given"
        self.kind = kind

    def output_spec(self):
        return [getattr(MetricOutputSpec, self.kind)("p")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        value = metric_input.row.data["value"]
        return result(p=float(value[1:]) if isinstance(value, str) and value.startswith("=") else value)


class Part(BaseModel):
    name: str
    n: int = 3


class Object:
    type = "object"

    def output_spec(self):
        return [MetricOutputSpec.model("part", Part), MetricOutputSpec.boolean("ok")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        return result(part={"name": metric_input.candidate.output_text}, ok=True)


class Seen:
    """A metric whose labels show its row and its output."""

    type = "seen"

    def output_spec(self):
        return [MetricOutputSpec.label("seen"), MetricOutputSpec.continuous_score("n")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        row, candidate = metric_input.row, metric_input.candidate
        seen = [row.row_index, sorted(row.data), candidate.output_text, candidate.trajectory, candidate.metadata]
        return result(seen=repr(seen), n=len(row.data))


class Wrong:
    """A metric whose outputs break its declaration, in the way that the row names."""

    type = "wrong"

    def output_spec(self):
        return [MetricOutputSpec.boolean("p"), MetricOutputSpec.boolean("q")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        match metric_input.row.data["how"]:
            case "missing":
                return result(p=True)
            case "undeclared":
                return result(p=True, q=True, z=1)
            case "twice":
                return MetricResult(outputs=[MetricOutput(name="p", value=1)] * 2)
            case "none":
                return None
            case "type":
                return result(p="maybe", q=True)
            case "raises":
                raise ValueError("boom")
        return result(p=True, q=False)


class Plain:
    """A metric that is not asynchronous."""

    type = "plain"

    def output_spec(self):
        return [MetricOutputSpec.boolean("p")]

    def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        return result(p=True)


class Name(str, enum.Enum):
    ONE = "one-name"


class Named:
    type = Name.ONE

    def output_spec(self):
        return [MetricOutputSpec.boolean("p")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        return result(p=metric_input.row.row_index == 0)


class Sleepy:
    type = "sleepy"

    def output_spec(self):
        return [MetricOutputSpec.continuous_score("s")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        await asyncio.sleep(0.001 * (metric_input.row.data["n"] % 3))
        return result(s=metric_input.row.data["n"] / 10)


class Together:
    """A metric with scores over all rows."""

    type = "together"

    def output_spec(self):
        return [MetricOutputSpec.continuous_score("length")]

    def corpus_output_spec(self):
        return [MetricOutputSpec.continuous_score("all"), MetricOutputSpec.discrete_score("rows")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        if metric_input.row.data.get("bad"):
            raise ValueError("a bad row")
        return result(length=len(metric_input.candidate.output_text or ""))

    async def compute_corpus_scores(self, inputs: list[MetricInput]) -> MetricResult:
        texts = [one.candidate.output_text or "" for one in inputs]
        return result(all=sum(map(len, texts)) / 3, rows=len(texts))


class Whole:
    """A metric whose outputs are the response and the output to score, as strings."""

    type = "whole"

    def output_spec(self):
        return [MetricOutputSpec.label("response"), MetricOutputSpec.label("text"), MetricOutputSpec.continuous_score("n")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        candidate = metric_input.candidate
        return result(response=repr(candidate.response), text=repr(candidate.output_text), n=1.0)


class Response:
    """A metric whose labels show a model's response."""

    type = "response"

    def output_spec(self):
        return [
            MetricOutputSpec.discrete_score("tokens"),
            MetricOutputSpec.label("finish"),
            MetricOutputSpec.label("calls"),
            MetricOutputSpec.label("kind"),
            MetricOutputSpec.label("keys"),
        ]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        response = metric_input.candidate.response
        (choice,) = response["choices"]
        message = choice.get("message") or {}
        return result(
            tokens=response["usage"]["total_tokens"],
            finish=str(choice["finish_reason"]),
            calls=repr(message["tool_calls"] if message else choice["text"]),
            kind=type(response).__name__,
            keys=repr(sorted(response)),
        )


KINDS = ["a b c", "", "a", "one two three four", "b"]
ROWS = [{"output": text, "expected": "a b c", "n": n} for n, text in enumerate(KINDS)]
VALUES = {
    "boolean": [True, 0, 1.0, "true", "no"],
    "discrete_score": [3, 3.0, True, "3"],
    "continuous_score": [0.5, 1, True, "0.25", "=nan"],
    "label": ["x", "y"],
}
REFUSED = {"boolean": [2, "maybe", None], "discrete_score": [3.5], "continuous_score": ["x", None], "label": [1]}
CHAT = {"messages": [{"role": "user", "content": "{{question}}"}]}
QUESTIONS = [{"question": f"what is {n}?", "expected": f"answer to what is {n}?", "n": n} for n in range(3)]
SCHEMA = {"type": "object", "properties": {"quality": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}


def judge(model: str, *scores: Any, question: str = "judge: {{item.output}}", **more: Any) -> LLMJudgeMetric:
    return LLMJudgeMetric(
        model=Model(url=model, name="judge", format="openai"),
        scores=list(scores),
        prompt_template={"messages": [{"role": "user", "content": question}]},
        **more,
    )


def _offline() -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {
        "kinds": {"metrics": Kinds(), "dataset": ROWS},
        "kinds in a list": {"metrics": [Kinds()], "dataset": ROWS},
        "two of one type": {"metrics": [Kinds(), Kinds(), Together()], "dataset": ROWS},
        "object": {"metrics": Object(), "dataset": ROWS[:2]},
        "seen": {"metrics": Seen(), "dataset": [{"output": "x"}, {"output": 7}, {"a": {"b": [1]}}]},
        "mapped": {
            "metrics": Seen(),
            "dataset": [{"said": "x", "deep": {"ref": "r"}}, {"said": None}, {"output": "own"}],
            "field_mapping": FieldMapping(output="said", reference="deep.ref", custom={"mine": "deep"}),
        },
        "not asynchronous": {"metrics": Plain(), "dataset": ROWS[:1]},
        "rows that are not objects": {"metrics": Plain(), "dataset": [1, 2]},
        "named by an enum": {"metrics": Named(), "dataset": ROWS[:2]},
        "many rows": {
            "metrics": Sleepy(),
            "dataset": [{"n": (n * 7919) % 101} for n in range(60)],
            "config": RunConfig(parallelism=5),
        },
        "some rows": {
            "metrics": Sleepy(),
            "dataset": [{"n": n} for n in range(9)],
            "config": RunConfig(limit_samples=4),
        },
        "together": {"metrics": Together(), "dataset": ROWS},
        "a bad row": {"metrics": Together(), "dataset": [*ROWS[:2], {"output": "x", "bad": True}]},
        "figures": {"metrics": Kinds(), "dataset": ROWS, "aggregate_fields": ("mean", "histogram")},
        "exact match": {
            "metrics": ExactMatchMetric(reference="{{item.expected}}", candidate="{{item.output}}"),
            "dataset": [*ROWS, {"output": "The A, b C!", "expected": "a b c"}],
        },
        "no such column": {"metrics": ExactMatchMetric(reference="{{item.gold}}", candidate="x"), "dataset": ROWS[:1]},
        "no text": {"metrics": ExactMatchMetric(reference="{{item.n}}", candidate="x"), "dataset": ROWS[:1]},
        "f1": {"metrics": F1Metric(reference="{{item.expected}}", candidate="{{item.output}}"), "dataset": ROWS},
        "bleu": {"metrics": BLEUMetric(references=["{{item.expected}}"], candidate="{{item.output}}"), "dataset": ROWS},
        "rouge": {"metrics": ROUGEMetric(reference="{{item.expected}}", candidate="{{item.output}}"), "dataset": ROWS},
        "numbers": {
            "metrics": NumberCheckMetric(operation=">=", left_template="{{item.output}}", right_template="{{item.n}}"),
            "dataset": [{"output": "it is 4.5", "n": 4}, {"output": "none", "n": 1}, {"output": "-3", "n": 2}],
        },
        "tool calls": {
            "metrics": ToolCallingMetric(reference="{{item.calls | tojson}}"),
            "dataset": [
                _called("get", '{"x": 1}'),
                _called("get", '{"x": 2}'),
                _called("other", "{}"),
                _called("get", "no JSON"),
            ],
        },
        "tool calls without a response": {
            "metrics": ToolCallingMetric(reference="{{item.calls | tojson}}"),
            "dataset": [{"calls": []}],
        },
    }
    for operation in ("equals", "!=", "contains", "not contains", "startswith", "endswith"):
        check = StringCheckMetric(operation=operation, left_template="{{item.output}}", right_template="a b")
        made[f"string {operation}"] = {"metrics": check, "dataset": ROWS}
    for kind, values in VALUES.items():
        made[f"{kind} outputs"] = {"metrics": Given(kind), "dataset": [{"value": value} for value in values]}
    for kind, values in REFUSED.items():
        for value in values:
            made[f"{kind} {value!r}"] = {"metrics": Given(kind), "dataset": [{"value": value}]}
    for how in ("missing", "undeclared", "twice", "none", "type", "raises"):
        made[f"wrong: {how}"] = {"metrics": Wrong(), "dataset": [{"how": "right"}, {"how": how}]}
    return made


def _called(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    response = {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}
    return {"calls": [{"function": {"name": "get", "arguments": {"x": 1}}}], "response": response}


def _judged(model: str) -> dict[str, dict[str, Any]]:
    quality = RangeScore(name="quality", minimum=1, maximum=5)
    tone = RubricScore(name="tone", rubric=[Rubric(label="kind", value=1), Rubric(label="rude", value=0)])
    rows = [{"output": "good"}, {"output": "bad"}, {"output": "good too"}]
    pattern = RegexScoreParser(pattern=r'"quality": (\d)')
    return {
        "judge": {"metrics": judge(model, quality, tone), "dataset": rows},
        "judge by a pattern": {
            "metrics": judge(model, RangeScore(name="q", minimum=1, maximum=5, parser=pattern)),
            "dataset": rows,
        },
        "judge by another key": {
            "metrics": judge(
                model, RangeScore(name="q", minimum=1, maximum=5, parser=JSONScoreParser(json_path="quality"))
            ),
            "dataset": rows,
        },
        "judge without JSON": {"metrics": judge(model, quality), "dataset": [{"output": "good words"}]},
        "judge refused": {"metrics": judge(model, quality), "dataset": [{"output": "boom"}]},
        "judge refused, ignored": {
            "metrics": judge(model, quality, tone, ignore_request_failure=True),
            "dataset": [{"output": "boom"}, {"output": "good"}],
        },
        "judge that fails once": {"metrics": judge(model, quality), "dataset": [{"output": "good twice"}]},
        "judge with parameters": {
            "metrics": judge(
                model, quality, inference=InferenceParams(temperature=0.5, max_tokens=9), system_prompt="Be strict."
            ),
            "dataset": rows[:1],
        },
    }


def _online(model: str) -> dict[str, dict[str, Any]]:
    def online(
        metrics: Any, rows: Any = QUESTIONS, *, prompt: Any = CHAT, format: str = "openai", **config: Any
    ) -> Any:
        return {
            "metrics": metrics,
            "dataset": rows,
            "target": Model(url=model, name="target", format=format),
            "prompt_template": prompt,
            "config": RunConfigOnlineModel(parallelism=1, max_retries=0, **config),
        }

    exact = ExactMatchMetric(reference="{{item.expected}}")
    failing = [{"question": "fine"}, {"question": "boom"}]
    calling = [{"question": "x", "calls": [{"function": {"name": "get", "arguments": {"question": "x"}}}]}]
    scored = RangeScore(name="quality", minimum=1, maximum=5)
    tools = {**CHAT, "tools": [TOOL]}
    return {
        "online": online(Response()),
        "online completion": online(Response(), prompt="go on: {{question}}"),
        "online seen": online(Seen()),
        "online exact": online(exact),
        "online with several": online([exact, Response()]),
        "online tool calls": online(ToolCallingMetric(reference="{{item.calls | tojson}}"), calling, prompt=tools),
        "online response of tool calls": online(Response(), calling, prompt=tools),
        "online log probabilities": online(Response(), [{"question": "logprobs"}]),
        "online nim": online(Response(), QUESTIONS[:1], format="nim"),
        "online with parameters": online(
            Response(),
            QUESTIONS[:1],
            inference=InferenceParams(temperature=0.25, top_p=0.5, seed=3),
            system_prompt="Be brief.",
        ),
        "online completion with a system prompt": online(
            Response(), QUESTIONS[:1], prompt="go on: {{question}}", system_prompt="Be brief."
        ),
        "online structured": online(Response(), QUESTIONS[:1], structured_output={"schema": SCHEMA, "strict": True}),
        "online structured nim": online(Response(), QUESTIONS[:1], format="nim", structured_output={"schema": SCHEMA}),
        "online structured without a schema": online(Response(), QUESTIONS[:1], structured_output=SCHEMA),
        "online reasoning": online(
            Seen(), [{"question": "thought"}], reasoning=ReasoningParams(end_token="</think>", effort="low")
        ),
        "online inferred": online(Seen(), prompt=None),
        "online failed": online(Seen(), failing),
        "online failed, ignored": online(Seen(), failing, ignore_request_failure=True),
        "online failed, ignored, several": online([Seen(), Together()], failing, ignore_request_failure=True),
        "online bad metric, ignored": online(
            Together(), [{"question": "x"}, {"question": "y", "bad": True}], ignore_request_failure=True
        ),
        "online judge": online(judge(model, scored, question="judge: {{sample.output_text}}"), [{"question": "good"}]),
    }


def _agents(model: str) -> dict[str, dict[str, Any]]:
    base = model.removesuffix("/v1")
    prompt = {"prompt": "{{item.question}}?"}
    body = {"q": "{{ prompt }}", "n": 2, "whole": "{{ request | tojson }}"}

    def asks(metrics: Any, target: Any, rows: Any = QUESTIONS, *, prompt: Any = prompt, **config: Any) -> Any:
        run = RunConfigOnline(parallelism=1, max_retries=0, **config)
        return {"metrics": metrics, "dataset": rows, "target": target, "prompt_template": prompt, "config": run}

    def generic(path: str = "/agent", said: str = "$.result.text", **more: Any) -> GenericAgent:
        return GenericAgent(url=base + path, name="agent", body=body, response_path=said, **more)

    toolkit = NemoAgentToolkitAgent(url=base, name="toolkit")
    failing = [{"question": "fine"}, {"question": "boom"}]
    return {
        "agent": asks(Whole(), generic()),
        "agent seen": asks(Seen(), generic(trajectory_path="$.steps")),
        "agent part": asks(Whole(), generic(said="$.result.parts[1].deep['q']")),
        "agent anywhere": asks(Whole(), generic(said="$..tool")),
        "agent with messages": asks(
            Whole(),
            GenericAgent(url=f"{base}/agent", name="a", body={"q": "{{ messages[0].content }}"}, response_path="$.result.text"),
            prompt={"messages": [{"role": "user", "content": "{{item.question}}"}]},
        ),
        "agent stream": asks(Whole(), generic("/agent/events", "$.delta", stream=True, response_aggregation="concat")),
        "agent stream, last": asks(Seen(), generic("/agent/events", "$.delta", stream=True)),
        "agent without output": asks(Seen(), generic(said="$.nothing"), QUESTIONS[:1], ignore_request_failure=True),
        "agent failed, ignored": asks(Seen(), generic(), failing, ignore_request_failure=True),
        "toolkit": asks(Whole(), toolkit, prompt={"messages": [{"role": "user", "content": "{{item.question}}"}]}),
        "toolkit failed": asks(Seen(), toolkit, [{"question": "fails"}], ignore_request_failure=True),
        "toolkit passthrough": asks(
            Whole(),
            NemoAgentToolkitAgent(
                url=base,
                name="t",
                nat=NatAgentConfig(
                    endpoint="/agent/events", request_mode="passthrough", query_params={}, response_path="$.delta"
                ),
            ),
            prompt={"q": "{{item.question}}", "prompt": "x"},
        ),
    }


def cases(model: str) -> dict[str, dict[str, Any]]:
    return {**_offline(), **_judged(model), **_online(model), **_agents(model)}
