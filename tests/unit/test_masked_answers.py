"""In models' stored answers, a secret is masked in every form in which JSON and a provider's streams can contain it."""

import base64
import json

import pytest

from evaluator_host.platform.models.gateway.masked_answers import masked_body
from evaluator_host.types.redaction import MASKED, Redactor

SECRET = 'tok-77aa/51c0 "fee<9d3e'
REDACTOR = Redactor(SECRET)


def events(*values: object) -> str:
    return "".join(f"event: e\ndata: {json.dumps(one)}\n\n" for one in values) + "data: [DONE]\n\n"


def chunk(text: str, **more: object) -> dict[str, object]:
    return {"id": "c1", "choices": [{"index": 0, "delta": {"content": text}, **more}]}


def said(body: str, choice: int = 0) -> str:
    """Return the text that a client reads from the stream of a chat's answer."""
    found = [json.loads(line[5:]) for line in body.split("\n") if line.startswith("data: {")]
    return "".join(one["delta"]["content"] for event in found for one in event["choices"] if one["index"] == choice)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"content": f"key {SECRET}."}),
        json.dumps({"content": f"key {SECRET}."}).replace("/", "\\/"),  # escaped as in PHP
        json.dumps({"content": f"key {SECRET}."}).replace("<", "\\u003c"),  # escaped as in Go
        json.dumps({"content": f"key {SECRET}."}).replace("t", "\\u0074"),
        json.dumps({"arguments": json.dumps({"key": SECRET})}),
        json.dumps({SECRET: [{"deep": SECRET}]}),
        json.dumps({"content": base64.b64encode(SECRET.encode()).decode()}),
    ],
)
def test_a_secret_in_json_is_masked(body: str) -> None:
    stored = masked_body(REDACTOR, body, streamed=False)
    assert MASKED in stored
    assert "77aa" not in stored
    assert SECRET not in repr(json.loads(stored))
    in_a_stream = masked_body(REDACTOR, f"data: {body}\n\ndata:{body}\n\n", streamed=True)
    assert in_a_stream.count(MASKED) == 2 * stored.count(MASKED)
    assert "77aa" not in in_a_stream


@pytest.mark.parametrize("size", [1, 4, 9])
def test_a_secret_over_several_events_is_masked(size: int) -> None:
    text = f"the key is {SECRET}, keep it"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    stored = masked_body(REDACTOR, events(*map(chunk, pieces)), streamed=True)
    assert said(stored) == f"the key is {MASKED}, keep it"
    assert stored.endswith("data: [DONE]\n\n")
    assert stored.count("event: e") == len(pieces)


def test_pieces_of_two_choices_are_told_apart() -> None:
    pieces = [SECRET[at : at + 5] for at in range(0, len(SECRET), 5)]
    sent = [{"choices": [{"index": n, "delta": {"content": one}}]} for one in pieces for n in (0, 1)]
    stored = masked_body(REDACTOR, events(*sent), streamed=True)
    assert (said(stored, 0), said(stored, 1)) == (MASKED, MASKED)


def test_pieces_of_a_tool_call_and_of_a_block_are_masked() -> None:
    arguments = json.dumps({"key": SECRET})
    calls = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": one}}]}}]}
        for one in arguments
    ]
    blocks = [{"type": "content_block_delta", "index": 1, "delta": {"text": one}} for one in SECRET]
    parts = [{"type": "response.output_text.delta", "output_index": 0, "delta": one} for one in SECRET]
    for sent in (calls, blocks, parts):
        stored = masked_body(REDACTOR, events(*sent), streamed=True)
        assert stored.count(MASKED) == 1
        assert len(stored) < len(events(*sent)) + len(MASKED)


@pytest.mark.parametrize(
    ("body", "streamed"),
    [
        ('{"a":  1.0, "b": "\\u00e9 \\/", "n": 12345678901234567890123}', False),
        ("not JSON", False),
        (events(chunk("the key"), chunk(" is tok-77aa"), {"usage": {"n": 1}}), True),
        ("data: [1, 2]\n\ndata: broken\n\n: comment\nid: 7\n\ndata:\n\n", True),
        ("", True),
    ],
)
def test_an_answer_without_a_secret_is_stored_as_it_came(body: str, streamed: bool) -> None:
    assert masked_body(REDACTOR, body, streamed=streamed) == body
