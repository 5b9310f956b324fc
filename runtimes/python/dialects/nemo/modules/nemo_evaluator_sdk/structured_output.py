"""Makes the request parameters that let a model answer in JSON, for each kind of API."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from .enums import ModelFormat
from .inference import InferenceFn, deep_merge
from .values.models import Model
from .values.scores import JSONScoreParser, RangeScore, RubricScore

_PROBED = "__nmp_probe_score"
_PROBE = {
    "type": "object",
    "properties": {_PROBED: {"type": "integer"}},
    "required": [_PROBED],
    "additionalProperties": False,
}


class StructuredOutputMode(str, Enum):
    """How an API accepts a JSON schema for the answer. With `unsupported`, the prompt describes the schema instead."""

    OPENAI_RESPONSE_FORMAT = "openai_response_format"
    ROOT_GUIDED_JSON = "root_guided_json"
    NVEXT_GUIDED_JSON = "nvext_guided_json"
    UNSUPPORTED = "unsupported"


def default_structured_output_mode(format: str) -> StructuredOutputMode:  # noqa: A002 - the documented name
    """Return how an API of this format (`openai`, `nim`) takes a JSON schema by default.

    Raises:
      ValueError: the format is not known.
    """
    if format == ModelFormat.OPEN_AI:
        return StructuredOutputMode.OPENAI_RESPONSE_FORMAT
    if format == ModelFormat.NVIDIA_NIM:
        return StructuredOutputMode.NVEXT_GUIDED_JSON
    raise ValueError(f"Unsupported structured output format: {format}")


class StructuredOutput(BaseModel):
    """The JSON schema that a model's answer must match, and how to send it."""

    name: str | None = None
    json_schema: dict[str, Any] = Field(alias="schema")
    strict: bool = False


async def detect_mode(model: Model, ask: InferenceFn, *, api_key: str | None) -> StructuredOutputMode:
    """Return the mode in which an NVIDIA NIM accepts a schema, found by trial requests; `unsupported` if all fail."""
    request = {
        "messages": [{"role": "user", "content": "Answer with one JSON object of the given schema, and nothing else."}],
        "temperature": 0,
        "max_tokens": 128,
    }
    for mode in (StructuredOutputMode.ROOT_GUIDED_JSON, StructuredOutputMode.NVEXT_GUIDED_JSON):
        try:
            response = await ask(model, deep_merge(request, _parameter(mode, _PROBE, strict=False)), 1, api_key=api_key)
            answer = json.loads(response["choices"][0]["message"]["content"])
            if set(answer) == {_PROBED} and type(answer[_PROBED]) is int:
                return mode
        except Exception:  # noqa: BLE001, S112 - every failure of a trial means the same
            continue
    return StructuredOutputMode.UNSUPPORTED


def with_schema(
    request: dict[str, Any], structured_output: dict[str, Any], mode: StructuredOutputMode
) -> dict[str, Any]:
    """Add to a request that the answer must match the schema.

    Raises:
      ValueError: there is no schema.
    """
    given = StructuredOutput.model_validate(structured_output)
    schema, strict = given.json_schema, given.strict
    if mode is not StructuredOutputMode.UNSUPPORTED:
        return deep_merge(request, _parameter(mode, schema, strict=strict))
    text = json.dumps(schema, separators=(",", ":"))
    return with_system(request, f"Return ONLY valid JSON and ensure it matches this JSON schema exactly: {text}")


def with_system(request: dict[str, Any], text: str) -> dict[str, Any]:
    """Add text at the start of a request's system message; create the message if it is missing."""
    if messages := request.get("messages"):
        first = messages[0]
        if first.get("role") == "system":
            return {**request, "messages": [{**first, "content": f"{text} {first['content']}"}, *messages[1:]]}
        return {**request, "messages": [{"role": "system", "content": text}, *messages]}
    if request.get("prompt"):
        return {**request, "prompt": f"{text} {request['prompt']}"}
    return request


def schema_of_scores(scores: list[RubricScore | RangeScore]) -> dict[str, Any] | None:
    """Make the JSON schema of an answer with these scores, or None if no score is read from JSON.

    Raises:
      ValueError: two scores need different values under one key.
    """
    properties: dict[str, Any] = {}
    for score in scores:
        if not isinstance(score.parser, JSONScoreParser):
            continue
        key, schema = score.parser.json_path, _property(score)
        if properties.setdefault(key, schema) != schema:
            raise ValueError(
                f"conflicting auto-generated structured_output for json_path '{key}'; "
                "provide explicit structured_output"
            )
    if not properties:
        return None
    return {"schema": {"type": "object", "properties": properties, "required": list(properties)}}


def _property(score: RubricScore | RangeScore) -> dict[str, Any]:
    if isinstance(score, RubricScore):
        return {"type": "string", "enum": [level.label for level in score.rubric]}
    kind = "integer" if isinstance(score.minimum, int) else "number"
    return {"type": kind, "minimum": score.minimum, "maximum": score.maximum}


def _parameter(mode: StructuredOutputMode, schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    if mode is StructuredOutputMode.OPENAI_RESPONSE_FORMAT:
        named = {"name": "structured_output", "schema": schema, "strict": strict}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    guided = {"guided_json": schema}
    return {"extra_body": guided if mode is StructuredOutputMode.ROOT_GUIDED_JSON else {"nvext": guided}}
