"""If code returns a large value, a coding agent gets at most a few hundred kilobytes of it."""

import pytest

from evaluator_host.integrations.mcp_server import _brief
from evaluator_host.types.json_values import encode_json


@pytest.mark.parametrize(
    "value",
    [
        {"text": "x" * 900_000},
        {"x" * 900_000: 1},
        {f"metric {number}": number for number in range(60_000)},
        {"items": list(range(200_000))},
        {"texts": ["x" * 3000] * 300},
        {"rows": [{f"column {n}": "x" * 10 for n in range(100)} for _ in range(300)]},
    ],
    ids=["text", "key", "keys", "items", "texts", "rows"],
)
def test_an_answer_is_bounded_and_says_what_is_cut(value: dict[str, object]) -> None:
    cut = encode_json(_brief(value)).decode()
    assert len(cut) < 200_000
    assert " more" in cut or " characters)" in cut


def test_an_ordinary_answer_stays_whole() -> None:
    value = {
        "score": 1.0,
        "reason": "x" * 4000,
        "metrics": {f"m{n}": n for n in range(900)},
        "rows": [{"a": None}] * 100,
    }
    assert _brief(value) == value
