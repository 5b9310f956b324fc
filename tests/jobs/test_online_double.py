"""The client library `openai` works with the model server of the tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.model_server import DROP, ModelServer, Reply, error_body

if TYPE_CHECKING:
    import openai


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(key="sk-right-key") as started:
        yield started


def client(server: ModelServer, *, key: str = "sk-right-key", retries: int = 0) -> "openai.OpenAI":
    import openai  # noqa: PLC0415 - the import takes half a second

    return openai.OpenAI(base_url=server.url, api_key=key, max_retries=retries, timeout=30)


def ask(server: ModelServer, *, tools: bool = False, key: str = "sk-right-key", retries: int = 0) -> object:
    function = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    with client(server, key=key, retries=retries) as opened:
        return opened.chat.completions.create(
            model="m-1", messages=[{"role": "user", "content": "why?"}], **({"tools": [function]} if tools else {})
        )


@pytest.mark.slow
def test_it_answers_with_text_or_tool_calls_and_counts_tokens(server: ModelServer) -> None:
    said = ask(server)
    assert (said.model, said.choices[0].message.content, said.choices[0].finish_reason) == (
        "m-1",
        "answer to why?",
        "stop",
    )
    assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens
    called = ask(server, tools=True).choices[0]
    assert (called.message.content, called.message.tool_calls[0].function.name) == (None, "look_up")


@pytest.mark.slow
def test_its_errors_are_those_of_the_protocol(server: ModelServer) -> None:
    import openai  # noqa: PLC0415

    with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
        ask(server, key="sk-wrong-key")
    for fault, error in (
        (400, openai.BadRequestError),
        (Reply(429, error_body("slow down"), {"Retry-After": "1"}), openai.RateLimitError),
        (500, openai.InternalServerError),
        (DROP, openai.APIConnectionError),
    ):
        server.faults = lambda question, attempt, fault=fault: fault
        with pytest.raises(error):
            ask(server)


@pytest.mark.slow
def test_a_client_that_tries_again_gets_through(server: ModelServer) -> None:
    server.faults = lambda question, attempt: (DROP, 503, None)[attempt - 1]
    assert ask(server, retries=2).choices[0].message.content == "answer to why?"
    assert len(server.asked) == 3
