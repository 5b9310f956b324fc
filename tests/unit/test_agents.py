"""The host reads agents' answers with JSONPaths and from streams, and refuses wrong requests before it sends them."""

import tracemalloc
from typing import Any

import pytest

from evaluator_host.platform.models import agent_answers
from evaluator_host.platform.models.agents import payload_of, require
from evaluator_host.sdk import agent_inference
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import Target

# the functions exist twice, because code in a sandbox cannot import those of the host
READERS = {"host": agent_answers, "sandbox": agent_inference}
ANSWER = {"a": {"b c": [{"d": 1}, {"d": 2}]}, "d": 3}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Any:
    return READERS[request.param]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a['b c'][0].d", [1]),
        ("a.'x'", None),
        ("$.a['b c'][-1].d", [2]),
        ("$.a['b c'][*].d", [1, 2]),
        ("$..d", [3, 1, 2]),
        ("d", [3]),
        ("$.nothing.here", []),
        ("$.a[?(@.d > 1)]", None),
        ("$", [ANSWER]),
    ],
)
def test_json_paths_select_the_right_values(path: str, found: list[object] | None, reader: Any) -> None:
    if found is None:
        with pytest.raises(ValueError, match="JSONPath"):
            reader.find_path(ANSWER, path)
    else:
        assert reader.find_path(ANSWER, path) == found


@pytest.mark.long
def test_a_path_that_reaches_too_much_is_refused_before_it_takes_memory(reader: Any) -> None:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep, *range(20)]
    tracemalloc.start()
    with pytest.raises(ValueError, match="more than"):
        reader.find_path(deep, "$..*..*")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 1024 * 1024


def test_a_path_that_reaches_too_much_is_refused(reader: Any) -> None:
    wide = {"a": [[[0] * 50 for _ in range(50)] for _ in range(50)]}
    with pytest.raises(ValueError, match="more than"):
        reader.find_path(wide, "$..*..*")


def test_the_paths_of_a_stream_may_reach_only_so_many_values_in_all_events() -> None:
    """Each event is harmless alone, but a stream has thousands, and the host reads them in a thread that it cannot stop."""
    event = "data: " + '{"a":' * 20 + "1" + "}" * 20
    how = {"path": "$" + "..a" * 6, "field": "response_path", "trajectory_path": None, "joined": False}
    agent_answers.read_stream([event], **how)
    with pytest.raises(ValueError, match="more than"):
        agent_answers.read_stream([event] * 20, **how)


def test_answers_are_read_from_streams(reader: Any) -> None:
    lines = ["event: x", "note: {}", 'data: {"v": "a"}', 'data: {"v": "b", "t": [1]}', "data: [DONE]", "junk"]
    how = {"path": "$.v", "field": "response_path", "trajectory_path": "$.t"}
    joined, last = reader.read_stream(lines, **how, joined=True)
    assert (joined["choices"][0]["message"]["content"], joined["trajectory"], last["v"]) == ("ab", [1], "b")
    assert reader.read_stream(lines, **how, joined=False)[0]["choices"][0]["message"]["content"] == "b"
    with pytest.raises(reader.AgentAnswerError, match="5: broken"):
        reader.read_stream([*lines, 'data: {"error": {"code": 5, "message": "broken"}}'], **how, joined=True)


def test_an_agent_gets_the_body_that_its_template_describes() -> None:
    ask = {"body": {"q": "{{ messages[-1].content }}", "all": "{{ request | tojson }}"}, "response_path": "$"}
    target = Target("http://a/b", "a", messages=({"role": "user", "content": "say {{ item.x }}"},), agent=ask)
    messages = [{"role": "user", "content": "say 1"}]
    assert payload_of(target, {"x": 1}) == {"q": "say 1", "all": {"messages": messages}}
    whole = Target(
        "http://a/b", "a", prompt_template="{{ x }}", completion=True, agent={**ask, "body": "input_message"}
    )
    assert payload_of(whole, {"x": 1}) == {"input_message": "1"}


@pytest.mark.parametrize("changed", [{"response_path": "$[?(@)]"}, {"body": 3}, {"more": 1}, {"response_path": ""}])
def test_an_invalid_agent_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="target is not valid"):
        require({"body": {}, "response_path": "$.x", **changed})  # type: ignore[dict-item]
