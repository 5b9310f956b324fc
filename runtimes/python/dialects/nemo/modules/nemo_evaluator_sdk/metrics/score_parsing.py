"""Reads the scores in a judge's answer; a score that cannot be read is NaN."""

from __future__ import annotations

import json
import re
from typing import Any

from ..values.scores import JSONScoreParser, RangeScore, RegexScoreParser, RubricScore

_NAN = float("nan")


def parse(score: RubricScore | RangeScore, text: str) -> tuple[float, str | None]:
    """Read a score's value, and its label or None, from a judge's answer. Only rubric scores have labels.

    Raises:
      ValueError: the value has a type that no score can have.
    """
    parser = score.parser
    found = _by_pattern(parser, text) if isinstance(parser, RegexScoreParser) else _by_key(parser, text)
    if isinstance(score, RubricScore):
        levels = {level.label: float(level.value) for level in score.rubric}
        return (levels[found], found) if isinstance(found, str) and found in levels else (_NAN, "")
    if isinstance(parser, RegexScoreParser):
        return _number(found), None
    if found is None or isinstance(found, str):
        return _NAN, None
    if not isinstance(found, int | float):
        raise ValueError(f"score {score.name} is {type(found).__name__}, not a number")
    return float(found), None


def check_schema(score: RubricScore | RangeScore, structured_output: dict[str, Any] | None) -> None:
    """Check that the JSON schema of the judge's answer has a field for the score.

    Raises:
      ValueError: the schema has no such field.
    """
    if not structured_output or not isinstance(score.parser, JSONScoreParser):
        return
    schema = structured_output.get("schema")
    if not schema:
        raise ValueError("missing schema for structured output")
    kind = schema.get("type", "")
    if kind != "object":
        raise ValueError(f"schema must be type 'object' for JSON score parser: {kind}")
    key = score.parser.json_path
    declared = schema.get("properties", {}).get(key)
    if not declared:
        raise ValueError(f"schema must have {key} defined as an object property for JSON score parser: {schema}")
    kind = declared.get("type")
    if isinstance(score, RubricScore):
        if kind != "string":
            raise ValueError(
                f"expected string type in schema for property '{key}' when used with score rubric and JSON score "
                f"parser: {kind}"
            )
    elif kind not in ("number", "integer", "boolean"):
        raise ValueError(
            f"schema property {key} must be type number, integer, or boolean for JSON score parser: {declared}"
        )


def _by_pattern(parser: RegexScoreParser, text: str) -> str | None:
    pattern = re.compile(parser.pattern)
    found = pattern.search(text) if parser.method == "search" else pattern.match(text)
    return found[1] if text and found is not None and pattern.groups else None


def _by_key(parser: JSONScoreParser, text: str) -> Any:
    try:
        answer = json.loads(text)
    except json.JSONDecodeError:
        return None
    return answer.get(parser.json_path) if isinstance(answer, dict) else None


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return _NAN
