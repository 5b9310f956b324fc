"""Each platform's metrics for conversations get the row's messages in the platform's form, whatever form the row
has."""

import asyncio
from functools import partial
from textwrap import dedent

import pytest

from evaluator_host.engine.contracts.conversation import messages_of_trace
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, Row, last_answer
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.cases import NativeCase

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
MESSAGES = [
    {"role": "user", "content": "Weather in Rome?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "assistant", "content": "It is sunny."},
    {"role": "user", "content": "Thanks"},
    {"role": "assistant", "content": "You are welcome."},
]
case = partial(NativeCase, row=Row(messages=MESSAGES), score=1.0)
CASES = [
    case(
        id="ours",
        recognised=Contract.EVALUATE,
        code="def evaluate(inputs, outputs, trace):\n    return outputs == 'You are welcome.' and len(inputs['messages']) == 6\n",
    ),
    case(
        id="a thread metric of Opik",
        recognised=Contract("opik"),
        code="""
            from opik.evaluation.metrics import score_result
            from opik.evaluation.metrics.conversation import conversation_thread_metric, types

            class Polite(conversation_thread_metric.ConversationThreadMetric):
                def score(self, conversation: types.Conversation, **ignored):
                    last = conversation[-1]["content"]
                    return score_result.ScoreResult(name="polite", value=float(last == "You are welcome."))
        """,
    ),
    case(
        id="a conversational metric of DeepEval",
        recognised=Contract("deepeval"),
        code="""
            from deepeval.metrics import BaseConversationalMetric
            from deepeval.test_case import ConversationalTestCase, Turn

            class Tools(BaseConversationalMetric):
                def __init__(self):
                    self.threshold = 0.5

                async def a_measure(self, test_case: ConversationalTestCase, **kwargs):
                    roles = [turn.role for turn in test_case.turns]
                    [call] = test_case.turns[1].tools_called
                    assert roles == ["user", "assistant", "assistant", "user", "assistant"], roles
                    assert (call.name, call.input_parameters, call.output) == ("weather", {"city": "Rome"}, "sunny")
                    self.score = 1.0
                    self.success = True
                    return self.score

                def measure(self, test_case):
                    raise NotImplementedError

                def is_successful(self):
                    return self.success

                @property
                def __name__(self):
                    return "Tools"
        """,
    ),
    case(
        id="a session of MLflow",
        recognised=Contract("mlflow"),
        code="""
            from mlflow.entities import Feedback, Trace
            from mlflow.genai.scorers import scorer

            @scorer
            def resolved(session: list[Trace]) -> Feedback:
                assert [one.info.request_preview for one in session] == ["Weather in Rome?", "Thanks"]
                return Feedback(value="welcome" in session[-1].data.response)
        """,
    ),
    case(
        id="a thread of LangSmith",
        recognised=Contract("langsmith"),
        code="""
            def perform_eval(run, example=None):
                messages = run["outputs"]["messages"]
                return {"turns": int(len(messages) == 6 and run["inputs"]["messages"] == messages)}
        """,
    ),
    case(
        id="a sample of Inspect",
        recognised=Contract("inspect"),
        code="""
            from inspect_ai.scorer import Score, accuracy, scorer

            @scorer(metrics=[accuracy()])
            def turns():
                async def score(state, target):
                    return Score(value="C" if len(state.messages) == 6 else "I")
                return score
        """,
    ),
    case(
        id="a reward of verifiers",
        recognised=Contract("rewards"),
        code="def polite(prompt, completion):\n    return float(prompt[-1]['content'] == 'Thanks' and completion[-1].content == 'You are welcome.')\n",
    ),
]


@ON_BUBBLEWRAP
async def test_a_conversation_reaches_the_metrics_of_every_platform(service: Service) -> None:
    results = await asyncio.gather(*(service.evaluate(case.evaluator, case.row) for case in CASES))
    differing = [one for case, result in zip(CASES, results, strict=True) for one in case.mismatches(result)]
    assert not differing, "\n".join(differing)


def otlp(*spans: dict) -> dict:
    """Return an OTLP export of these spans; the `attributes` of each given span are an object."""
    made = []
    for number, span in enumerate(spans):
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in span["attributes"].items()]
        start = str((number + 1) * 10**9)
        trace_id = span.get("trace", "a" * 32)
        made.append(
            {
                "traceId": trace_id,
                "spanId": f"{number + 1:016x}",
                "name": "chat",
                "startTimeUnixNano": start,
                "attributes": attributes,
            }
        )
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


SHORT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
TRACES = {
    "OpenTelemetry": otlp(
        {
            "attributes": {
                "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]',
                "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "hello"}], "finish_reason": "stop"}]',
            }
        }
    ),
    "OpenLLMetry": otlp(
        {
            "attributes": {
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "hi",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "hello",
            }
        }
    ),
    "OpenInference": otlp(
        {
            "attributes": {
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "hi",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "hello",
            }
        }
    ),
    "inputs and outputs of roots": otlp({"attributes": {"input.value": "hi", "output.value": "hello"}}),
}


@pytest.mark.parametrize("kind", TRACES)
def test_traces_hold_conversations(kind: str) -> None:
    assert messages_of_trace(TRACES[kind]) == SHORT


def test_later_calls_go_on_and_tools_are_called() -> None:
    first = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Weather?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "weather",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
    }
    told = messages_of_trace(otlp({"attributes": first}))
    assert told[1]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    ]
    other = {"gen_ai.prompt.0.content": "And tomorrow?", "gen_ai.prompt.0.role": "user"}
    both = messages_of_trace(otlp({"attributes": first}, {"attributes": other, "trace": "b" * 32}))
    assert [one["content"] for one in both] == ["Weather?", "", "And tomorrow?"]


@ON_BUBBLEWRAP
async def test_a_trace_alone_is_enough_for_a_thread_metric(service: Service) -> None:
    code = dedent(CASES[1].code).replace("You are welcome.", "hello")
    result = await service.evaluate(Evaluator(code), Row(trace=TRACES["OpenTelemetry"]))
    assert result.score == 1.0, result


def test_the_last_answer_is_a_text_of_the_assistant() -> None:
    assert last_answer([{"role": "user", "content": "hi"}]) is None
    assert (
        last_answer([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])
        == "a\nb"
    )
    assert Row(outputs="x", messages=SHORT).outputs == "x"
