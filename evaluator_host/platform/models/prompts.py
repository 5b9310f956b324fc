"""Renders the messages for a model from templates and a data set record, see docs/jobs.md."""

from functools import partial
from typing import Any, Final

from evaluator_host.platform.datasets.mapping import is_row, is_template
from evaluator_host.platform.datasets.template import compiled
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Json
from evaluator_host.types.jobs import Target
from evaluator_host.types.json_values import encode_json

_HINT: Final = "write a column as {{ question }} or {{ item.question }}"
_DEPTH: Final = 16
_TARGET_BYTES: Final = 1 << 20  # maximum size of a target, because each list of jobs contains it


def prompt_templates(target: Target) -> list[tuple[str, str]]:
    """Return the templates of a job's prompt, with the paths of their fields, for `rendering.require_templates`.

    Raises:
      InvalidRequest: the prompt is missing or has no template, or the target is too large.
    """
    refused = partial(InvalidRequest.of, "target", what="target")
    if bool(target.messages) == (target.prompt_template is not None):
        raise refused("give either prompt_template or messages", _HINT)
    if len(encode_json(target)) > _TARGET_BYTES:
        raise refused(f"it is over {_TARGET_BYTES >> 20} MB; shorten its prompt, and its other fields")
    found = [(field, text) for field, text in _texts(_messages(target), "target") if is_template(text)]
    found += [] if target.agent is None else _agent_templates(target)
    if not found:
        raise refused("the prompt does not name a column, so the model would get the same prompt for every row", _HINT)
    return found


def _agent_templates(target: Target) -> list[tuple[str, str]]:
    """Return the templates in the request to an agent, except the prompt."""
    body = (target.agent or {}).get("body")
    places = [*_texts(body, "target.agent.body"), *_texts(target.inference, "target.inference")]
    return [(field, text) for field, text in places if is_template(text)]


def messages_of(target: Target, record: dict[str, Any]) -> list[Json]:
    """Return the rendered messages for one record.

    Raises:
      BadTemplate: the record does not fit a template.
    """
    if is_row(record):  # if a record is a row, its columns are the keys of `inputs`, and templates can name them, too
        record = {**(record.get("inputs") or {}), **record}
    rendered: list[Json] = _rendered(_messages(target), record)
    return rendered


def _messages(target: Target) -> list[Json]:
    asked = list(target.messages) or [{"role": "user", "content": target.prompt_template}]
    return [{"role": "system", "content": target.system}, *asked] if target.system is not None else asked


def _rendered(value: Any, record: dict[str, Any]) -> Any:
    match value:
        case str():
            if not is_template(value):
                return value
            made = compiled(value).render(record)
            return made if isinstance(made, str) else encode_json(made).decode()
        case dict():
            return {name: _rendered(inner, record) for name, inner in value.items()}
        case list() | tuple():
            return [_rendered(inner, record) for inner in value]
        case _:
            return value


def _texts(value: Any, field: str, depth: int = 0) -> list[tuple[str, str]]:
    """Return every string in the messages, with its path."""
    if depth > _DEPTH:
        raise InvalidRequest.of(field, "the messages are nested too deeply", what="target")
    match value:
        case str():
            return [(field, value)]
        case dict():
            return [pair for name, inner in value.items() for pair in _texts(inner, f"{field}.{name}", depth + 1)]
        case list() | tuple():
            return [pair for inner in value for pair in _texts(inner, field, depth + 1)]
        case _:
            return []
