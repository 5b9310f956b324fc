"""NeMo's metrics get models' whole responses, with all fields of OpenAI's types; fields that are not set are null."""

from typing import Any

from evaluator_host.sdk.openai_types import completed

from evaluator_host.engine.contracts.model_requests import Ask
from evaluator_host.engine.service.attempts import answered
from evaluator_host.types.evaluator import Row

CALL: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}


def test_fields_that_a_response_leaves_out_are_null() -> None:
    message = {"content": None, "tool_calls": [CALL], "reasoning_content": "so"}
    chat = completed({"id": "1", "choices": [{"message": message}], "usage": {"prompt_tokens": 3}, "own": 1})
    assert (chat["own"], chat["service_tier"], chat["usage"]["total_tokens"]) == (1, None, None)
    (choice,) = chat["choices"]
    assert (choice["finish_reason"], choice["logprobs"], choice["message"]["refusal"]) == (None, None, None)
    assert choice["message"] == {**choice["message"], **message}

    text = completed({"choices": [{"text": "a"}]})
    assert text["choices"] == [{"finish_reason": None, "index": None, "logprobs": None, "text": "a"}]
    assert "service_tier" not in text


def test_a_value_that_is_not_a_response_stays_unchanged() -> None:
    for odd in (None, "text", [], {"choices": "none"}, {"choices": [None, 1]}, {"choices": [{"message": "a"}]}):
        found = completed(odd)
        assert found == odd if not isinstance(odd, dict) else found["choices"][:1] is not None
    custom = {"type": "custom", "custom": {"name": "a", "input": "b"}}
    found = completed({"choices": [{"message": {"tool_calls": [custom]}}]})
    assert found["choices"][0]["message"]["tool_calls"] == [custom]


class _Answers:
    def __init__(self, *answers: dict[str, Any]) -> None:
        self._answers = iter(answers)

    async def answer(self, ask: Ask, workspace: str) -> dict[str, Any]:
        return next(self._answers)


async def test_requests_of_a_row_are_kept_up_to_a_megabyte() -> None:
    asks = [Ask(str(n), "http://m/v1", "m", None, {"messages": []}, 0, 1.0) for n in range(4)]
    large = {"choices": [{"message": {"content": "x" * (1 << 20)}}]}
    models = _Answers({"response": {"choices": [1]}}, {"response": large}, {"error": "no", "status": 500})
    row = await answered(models, Row({}), asks[:3], workspace="w")
    assert isinstance(row, Row)
    assert row.requests[0] == {"request": {"model": "m", "messages": []}, "response": {"choices": [1]}}
    assert row.requests[1]["request"] is row.requests[1]["response"] is None
    assert row.requests[1]["left_out_bytes"] > 1 << 20
    assert (len(row.requests), len(row.answers)) == (2, 3)

    again = await answered(_Answers({"response": {"choices": [2]}}), row, asks[3:], workspace="w")
    assert isinstance(again, Row)
    assert [one["response"] for one in again.requests] == [{"choices": [1]}, None, {"choices": [2]}]
