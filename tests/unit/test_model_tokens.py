"""The host counts the tokens of a model's answer as providers report them."""

from dataclasses import replace
from typing import Any

import pytest

from evaluator_host.platform.models.endpoint import read_completion
from evaluator_host.platform.models.gateway.grants import GrantedModel
from evaluator_host.platform.models.gateway.protocols import EventStream, tokens_of
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.models import RegisteredModel

CACHED = {"cache_creation_input_tokens": 500, "cache_read_input_tokens": 1500}


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"usage": {"prompt_tokens": 2100, "completion_tokens": 10}}, (2100, 10)),
        # LiteLLM's answer for a model of Anthropic
        ({"usage": {"prompt_tokens": 2100, "completion_tokens": 10, **CACHED}}, (2100, 10)),
        ({"usage": {"input_tokens": 100, "output_tokens": 10, **CACHED}}, (2100, 10)),
        (
            {"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1, **CACHED}}},
            (2100, 1),
        ),
        # Grok, and Gemini behind OpenAI's API, count tokens of reasoning only in the total
        ({"usage": {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 328}}, (32, 296)),
        ({"usage": {"prompt_tokens": 5, "total_tokens": 5}}, (5, 0)),
        ({"usage": {"total_tokens": 5}}, (5, 0)),
        ({"usage": {"prompt_tokens": 10.0, "completion_tokens": 5.0}}, (10, 5)),
        ({"input_tokens": 1000}, (0, 0)),  # Anthropic's answer to messages/count_tokens
        ({"content": []}, None),
    ],
)
def test_each_token_counts_once_and_counting_tokens_is_free(
    body: dict[str, Any], tokens: tuple[int, int] | None
) -> None:
    found = tokens_of(body)
    assert (found and found[:2]) == tokens


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10}, 120),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 80}}, 48),
        ({"input_tokens": 100, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 80}}, 48),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 80}, 48),
        # Anthropic does not count cached tokens in `input_tokens`
        ({"input_tokens": 20, "output_tokens": 10, "cache_read_input_tokens": 80}, 48),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 1000}}, 30),
    ],
)
def test_cached_input_has_a_price_of_its_own(usage: dict[str, Any], cost: float) -> None:
    registered = RegisteredModel("judge", "http://model", input_price=1e6, output_price=2e6, cached_price=1e5)
    used = tokens_of({"usage": usage})
    assert used is not None
    assert GrantedModel(registered, None).cost(*used) == pytest.approx(cost)
    assert GrantedModel(replace(registered, cached_price=None), None).cost(*used) == 120
    stream = EventStream(hides_usage=False)
    stream.feed(b"data: " + encode_json({"usage": usage}) + b"\n\n")
    assert stream.tokens == used


@pytest.mark.parametrize(
    ("written", "cost"),
    [
        ({"cache_creation_input_tokens": 100}, 125),
        ({"cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_5m_input_tokens": 100}}, 125),
        ({"cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 60}}, 170),
        ({"cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 10**9}}, 200),
    ],
)
def test_input_that_anthropic_writes_to_its_cache_costs_more(written: dict[str, Any], cost: float) -> None:
    model = GrantedModel(RegisteredModel("judge", "http://model", input_price=1e6, output_price=0.0), None)
    used = tokens_of({"usage": {"input_tokens": 0, "output_tokens": 1, **written}})
    assert used is not None
    assert used.asked == 100
    assert model.cost(*used) == pytest.approx(cost)
    # the last event of a stream does not say for how long
    stream = EventStream(hides_usage=False)
    for one in (written, {"cache_creation_input_tokens": 100}):
        usage = {"input_tokens": 0, "output_tokens": 1, **one}
        stream.feed(b"data: " + encode_json({"usage": usage}) + b"\n\n")
    assert stream.tokens == used


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 328}, (32, 296, 328)),
        ({"prompt_tokens": 32, "completion_tokens": 9}, (32, 9, 41)),
    ],
)
def test_tokens_of_reasoning_count_for_a_target(usage: dict[str, int], tokens: tuple[int, int, int]) -> None:
    found = read_completion({"choices": [{"message": {"content": "Paris"}}], "usage": usage}).facts["tokens"]
    assert found == dict(zip(("prompt", "completion", "total"), tokens, strict=True))
