"""Renders metrics' templates with sandboxed Jinja; every name in a template must exist."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2.environment import Template, TemplateExpression
    from jinja2.sandbox import SandboxedEnvironment


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined  # imported here: it takes 40 ms, and a metric without templates does not need it
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(undefined=StrictUndefined)


def render_template(template: str | dict[str, Any] | list[Any], context: dict[str, Any]) -> Any:
    """Render a template; in objects and lists, render each string.

    A template that is only one expression keeps the type of its value. If a template contains `tojson`, the rendered
    text is parsed as JSON.

    Raises:
      jinja2.UndefinedError: a name in the template does not exist.
      json.JSONDecodeError: a rendered text that must be JSON is not JSON.
    """
    if isinstance(template, dict):
        return {key: render_template(value, context) for key, value in template.items()}
    if isinstance(template, list):
        return [render_template(value, context) for value in template]
    if not isinstance(template, str):
        return template
    compiled = _compiled(template)
    rendered = compiled.render(context) if hasattr(compiled, "render") else _value(compiled, context)
    return json.loads(rendered) if "tojson" in template and isinstance(rendered, str) else rendered


def render_request(template: str | dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Render a template as a request to a model; a rendered string becomes the request's `prompt`.

    Raises:
      TypeError: the rendered template is neither a string nor an object.
    """
    request = render_template(template, context)
    if isinstance(request, str):
        return {"prompt": request}
    if not isinstance(request, dict):
        raise TypeError(f"a request to a model is an object or a text, not {type(request).__name__}")
    return request


def _single_expression(template: str) -> str | None:
    text = template.strip()
    alone = text.startswith("{{") and text.endswith("}}") and text.count("{{") == text.count("}}") == 1
    return text[2:-2].strip() if alone and "{%" not in text and "%}" not in text else None


def compile_ahead(templates: Iterable[Any]) -> None:
    """Compile templates in advance, because a metric is made only once, but each row may run in a separate process."""
    for template in templates:
        with suppress(Exception):  # the row that uses the template will report the error
            _compiled(template)


@lru_cache(maxsize=256)
def _compiled(template: str) -> Template | TemplateExpression:
    expression = _single_expression(template)
    if expression is None:
        return _environment().from_string(template)
    return _environment().compile_expression(expression, undefined_to_none=False)


def _value(expression: TemplateExpression, context: dict[str, Any]) -> Any:
    names = {name: value for name, value in context.items() if isinstance(name, str) and name.isidentifier()}
    value = expression(**names)
    if isinstance(value, _environment().undefined):
        str(value)  # converting an undefined value to text raises an error that names the variable
    return value
