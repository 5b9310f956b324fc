"""Judges rows with a model, by the form that a user filled in (prompt, model, scale).

It renders the prompt, has the host call the model, and reads the score in the model's answer.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined, UndefinedError, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Template

__all__ = ["Judge", "facts"]

_SHOWN = 300
_MAX_TOKENS = 1024
_RETRIES = 3
_NO_MAX_TOKENS = "'max_tokens' is not supported with this model"
_PLACES = ("inputs", "outputs", "trace")
_NO_COLUMNS = ("inputs", "outputs", "output", "trace", "item")
"""Names in a prompt that do not stand for columns."""
_COLUMNS_OF = ("inputs", "item")
_ASKING = ("d", "default")
"""Filters with which a prompt can handle a missing column; every test (`is string`) can handle one too."""
_TASK = """\
{%- if system %}{{ system }}

{% endif -%}
Answer with one JSON object: {% if explains %}"reason", a short text; then {% endif %}"{{ name }}",
{%- if labels %} one of these texts:
{%- for one in labels %}
- {{ one.label }}{% if one.description %}: {{ one.description }}{% endif %}
{%- endfor %}
{%- else %} a number from {{ scale.min }} to {{ scale.max }}.
{%- endif %}
"""


class Judge:
    """Judges rows as a form says. The host has filled in the missing parts of the form."""

    def __init__(self, form: dict[str, Any]) -> None:
        self._form = form
        self._task = _compiled(_TASK).render(form)
        _compiled(form["prompt"])  # compile the templates only once: each row runs in a copy of this process

    def require_examples(self) -> None:
        """Check that the prompt can be rendered with each example.

        Raises:
          ValueError: an example lacks a column that the prompt reads.
        """
        for number, one in enumerate(self._form["examples"], 1):
            try:
                self._asked(_names(one["inputs"], one["outputs"], None))
            except UndefinedError as error:
                raise ValueError(f"example {number} of the judge does not fit its prompt: {error}") from None

    def score(
        self, inputs: dict[str, Any], outputs: Any, trace: Any, *, answers: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return `{"name", "score", "label", "reason"}`, or a request to the model that the host must send first.

        `answers` has the model's answers to earlier requests of this row. If the model did not answer, return
        `{"name", "unanswered"}` with the reason.

        Raises:
          ValueError: the answer has no score that the form allows.
        """
        request = self._request(_names(inputs, outputs, trace))
        answer = (answers or {}).get(_name(request))
        if answer is not None and _NO_MAX_TOKENS in str(answer.get("error", "")):
            request["max_completion_tokens"] = request.pop("max_tokens")
            answer = (answers or {}).get(_name(request))
        if answer is None:
            return {"asks": [self._ask(request)]}
        if "error" in answer:
            return {"name": self._form["name"], "unanswered": answer["error"]}
        return self._read(_text(answer["response"]))

    def _request(self, row: dict[str, Any]) -> dict[str, Any]:
        form = self._form
        messages = [{"role": "system", "content": self._task}]
        for one in form["examples"]:
            said = {"reason": one["reason"]} if form["explains"] else {}
            said[form["name"]] = one["answer"]
            messages += [
                self._asked(_names(one["inputs"], one["outputs"], None)),
                {"role": "assistant", "content": json.dumps(said, ensure_ascii=False)},
            ]
        messages.append(self._asked(row))
        request = {"messages": messages, "max_tokens": _MAX_TOKENS, **(form["inference"] or {})}
        if form["inference"].get("max_completion_tokens"):
            del request["max_tokens"]
        return {**request, "response_format": self._format()} if form["structured"] else request

    def _asked(self, row: dict[str, Any]) -> dict[str, str]:
        return {"role": "user", "content": _compiled(self._form["prompt"]).render(row)}

    def _format(self) -> dict[str, Any]:
        form, scale = self._form, self._form["scale"]
        if form["labels"]:
            answer: dict[str, Any] = {"type": "string", "enum": [one["label"] for one in form["labels"]]}
        else:
            whole = all(float(one).is_integer() for one in scale.values())
            answer = {"type": "integer" if whole else "number", "minimum": scale["min"], "maximum": scale["max"]}
        properties = {"reason": {"type": "string"}} if form["explains"] else {}
        properties[form["name"]] = answer
        schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
        named = {"name": "structured_output", "schema": schema, "strict": False}
        return {"type": "json_schema", "json_schema": named}

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        model = self._form["model"]
        asked = {"url": f"grant://{model}", "model": model, "secret": None, "retries": _RETRIES, "timeout_s": None}
        return {"id": _name(request), **asked, "request": request}

    def _read(self, text: str) -> dict[str, Any]:
        """Read the score in the model's answer: a JSON object, perhaps with other text around it.

        Raises:
          ValueError: the answer has no score, or a score that the form does not allow.
        """
        form, scale = self._form, self._form["scale"]
        found = _object(text)
        said, reason = found.get(form["name"]), found.get("reason")
        levels = {one["label"]: one["score"] for one in form["labels"]}
        label = said if isinstance(said, str) and said in levels else None
        score = levels[label] if label is not None else None
        if not levels and type(said) in (int, float) and scale["min"] <= said <= scale["max"]:
            score = said
        if score is None:
            wanted = "one of the labels" if levels else f"{scale['min']} to {scale['max']}"
            raise ValueError(f"the judge's answer has no {form['name']} ({wanted}): {text[:_SHOWN]}")
        reason = reason if isinstance(reason, str) and reason else None
        return {"name": form["name"], "score": score, "label": label, "reason": reason}


def facts(prompt: str) -> dict[str, Any]:
    """Return what a prompt reads from a row: `facts` and `reads`, as runtimes/PROTOCOL.md defines them.

    `facts` has the columns without which a row cannot be rendered. A column does not count if the prompt reads it only
    in a branch, in a test such as `is defined`, or with a default. `reads` has the columns that the prompt tests.
    """
    tree = _environment().parse(prompt)
    names = find_undeclared_variables(tree) - set(_environment().globals)
    columns = names - set(_NO_COLUMNS)
    read = {"inputs": columns | names & {*_COLUMNS_OF}, "outputs": names & {"outputs", "output"}}
    of_the_row = names - _assigned(tree)
    keys = [one for one in dict.fromkeys(_needed(tree, of_the_row)) if one not in ("output", "outputs")]
    parameters = [
        {
            "name": place,
            "read": bool(read.get(place, place in names)),
            "tested": False,
            "keys": keys if place == "inputs" else [],
            "compared": [],
        }
        for place in _PLACES
    ]
    asked: list[nodes.Node] = [one.test for one in tree.find_all((nodes.If, nodes.CondExpr))]
    asked += [one for one in tree.find_all((nodes.Filter, nodes.Test)) if _is_asking(one)]
    tested = dict.fromkeys(key for one in asked for key in _keys(one, of_the_row))
    reads = [{"of": "inputs", "key": key, "tested": True} for key in tested]
    return {"facts": [{"name": "judge", "line": None, "rest": False, "parameters": parameters}], "reads": reads}


def _assigned(tree: nodes.Template) -> set[str]:
    """Return the names to which a prompt itself gives a value, and which may then no longer mean a part of the row."""
    found = {one.name for one in tree.find_all(nodes.Name) if one.ctx != "load"}
    return found | {one.name for one in tree.find_all(nodes.Macro)}


def _needed(node: nodes.Node, names: set[str]) -> Iterator[str]:
    """Yield the columns without which a prompt cannot be rendered. `names` are the names that come from the row."""
    if (key := _key(node, names)) is not None:
        yield key
        return
    for child in _always(node):
        yield from _needed(child, names)


def _always(node: nodes.Node) -> list[nodes.Node]:
    """Return the parts of a node that every rendering evaluates, and that fail if a value is missing."""
    if isinstance(node, (nodes.If, nodes.CondExpr)):
        return [node.test]
    if isinstance(node, nodes.For):
        return [node.iter]
    if isinstance(node, (nodes.And, nodes.Or)):
        return [node.left]
    if isinstance(node, (nodes.Macro, nodes.CallBlock)) or _is_asking(node):
        return []
    return list(node.iter_child_nodes())


def _is_asking(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Test) or (isinstance(node, nodes.Filter) and node.name in _ASKING)


def _keys(node: nodes.Node, names: set[str]) -> list[str]:
    found = [_key(one, names) for one in (node, *node.find_all((nodes.Name, nodes.Getattr, nodes.Getitem)))]
    return [one for one in found if one is not None]


def _key(node: nodes.Node, names: set[str]) -> str | None:
    """Return the column that a node reads: `inputs.question` or `question`. Return None for other nodes."""
    if isinstance(node, nodes.Name):
        return node.name if node.name in names and node.name not in _NO_COLUMNS and node.ctx == "load" else None
    if not isinstance(node, (nodes.Getattr, nodes.Getitem)):
        return None
    if not isinstance(node.node, nodes.Name) or node.node.name not in names or node.node.name not in _COLUMNS_OF:
        return None
    if isinstance(node, nodes.Getattr):
        return None if hasattr(dict, node.attr) else node.attr
    key = node.arg.value if isinstance(node.arg, nodes.Const) else None
    return key if isinstance(key, str) else None


def _names(inputs: dict[str, Any], outputs: Any, trace: Any) -> dict[str, Any]:
    """Return the values that a prompt may use: the columns, `output`, `inputs`, `outputs`, `trace` and `item`.

    `item` has the columns and `output`. If the row has no outputs, its column `output` or `outputs` is used instead.
    """
    said = inputs.get("output", inputs.get("outputs")) if outputs is None else outputs
    data = {**inputs, **dict.fromkeys({"output", *(inputs.keys() & {"outputs"})}, said)}
    asked = {name: value for name, value in inputs.items() if name != "output"}
    return {
        **data,
        "item": data,
        "inputs": asked,
        "outputs": said,
        "trace": trace,
    }


@lru_cache(maxsize=2)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


def _environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(undefined=StrictUndefined)


def _name(request: dict[str, Any]) -> str:
    text = json.dumps(request, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _text(response: Any) -> str:
    """Return the text of a model's answer.

    Raises:
      ValueError: the answer has no text.
    """
    choices = response.get("choices") or [{}]
    message = choices[0].get("message") or {}
    text = message.get("content")
    if isinstance(text, str) and text:
        return text
    thought = any(message.get(name) for name in ("reasoning", "reasoning_content"))
    advice = (
        ": the model only reasoned, and perhaps used all of `max_tokens` for that; raise `max_tokens` in `inference`"
        if thought
        else ""
    )
    raise ValueError(f"the judge's answer has no text{advice}")


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
