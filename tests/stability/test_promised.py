"""No route, field or option of the last release is gone, and no field is newly required (docs/stability.md)."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.stability.promised import COMMANDS, ROUTES, broken, commands, lost_options, read, routes

EVALUATE = "POST /v1/evaluate"


def test_a_program_for_the_last_release_finds_every_route_and_field() -> None:
    assert list(broken(read(ROUTES), routes())) == []


def test_a_script_for_the_last_release_finds_every_command_and_option() -> None:
    assert list(lost_options(read(COMMANDS), commands())) == []


def _without_route(after: Any) -> None:
    del after[EVALUATE]


def _without_field_of_body(after: Any) -> None:
    del after[EVALUATE]["body"][".inputs"]


def _needs_more(after: Any) -> None:
    after[EVALUATE]["body"][".more!"] = ["string"]


def _takes_less(after: Any) -> None:
    after[EVALUATE]["body"][".evaluator.language"].remove("value python")


def _answers_less(after: Any) -> None:
    del after[EVALUATE]["answer"][".score!"]


def _answers_other(after: Any) -> None:
    after[EVALUATE]["answer"][".score!"].append("string")


def _answers_at_times(after: Any) -> None:
    after[EVALUATE]["answer"][".score"] = after[EVALUATE]["answer"].pop(".score!")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_route, "POST /v1/evaluate is gone"),
        (_without_field_of_body, "POST /v1/evaluate: body .inputs is gone"),
        (_needs_more, "POST /v1/evaluate: body .more is required"),
        (_takes_less, "POST /v1/evaluate: body .evaluator.language takes no value python"),
        (_answers_less, "POST /v1/evaluate: answer .score is gone"),
        (_answers_other, "POST /v1/evaluate: answer .score may be string"),
        (_answers_at_times, "POST /v1/evaluate: answer .score may be missing"),
    ],
)
def test_a_change_that_breaks_a_program_is_named(change: Callable[[Any], None], said: str) -> None:
    before = json.loads(json.dumps(routes()))
    after = copy.deepcopy(before)
    change(after)
    assert said in list(broken(before, after))


def test_additions_break_nobody() -> None:
    before = json.loads(json.dumps(routes()))
    after = copy.deepcopy(before)
    after["GET /v1/more"] = after[EVALUATE]
    after[EVALUATE]["body"][".more"] = ["object"]
    after[EVALUATE]["body"][".more.name!"] = ["string"]
    after[EVALUATE]["answer"][".more!"] = ["string"]
    assert list(broken(before, after)) == []


def test_a_command_that_is_renamed_is_named() -> None:
    before = {"run": ["--data", "file"], "serve": ["--port"]}
    assert list(lost_options(before, {"run": ["file"]})) == ["run has no --data", "serve is gone"]
