"""Templates over one record: Jinja's syntax, cut down to what ends in time and memory that its record bounds.

Templates are written by users and rendered in the host's own process, where Jinja's sandbox alone keeps out attribute
tricks but not `{{ "x" * 10**9 }}`, `|center(10**9)` or loops in loops. So a template is checked when it is parsed: it
may look things up, compare, choose, loop over what is inside the record and apply the filters below, and nothing else.
"""

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDERED_CHARS: Final = 4 << 20
RENDER_S: Final = 0.5
_TEMPLATE_CHARS: Final = 64 << 10

_FILTERS: Final = (
    *("capitalize", "count", "d", "default", "escape", "first", "float", "int", "items", "join", "last", "length"),
    *("list", "lower", "replace", "round", "sort", "string", "title", "tojson", "trim", "upper"),
)
_TESTS: Final = (
    *("boolean", "defined", "divisibleby", "eq", "even", "false", "float", "ge", "gt", "in", "integer", "iterable"),
    *("le", "lt", "mapping", "ne", "none", "number", "odd", "sequence", "string", "true", "undefined"),
)
_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For),
    *(nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.CondExpr),
    *(nodes.Concat, nodes.Add, nodes.Sub, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword),
)


class BadTemplate(Exception):
    """A template that cannot be taken, or that a record does not fit; `str` says why and, where known, the line."""


class _Environment(ImmutableSandboxedEnvironment):
    """Looks at the clock whenever a template looks something up: a loop cannot go on for long without doing so."""

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        self.deadline = float("inf")
        own = {"join": _join, "replace": _replace}
        self.filters = {name: _bounded(own.get(name, self.filters[name])) for name in _FILTERS}
        self.tests = {name: self.tests[name] for name in _TESTS}
        self.globals.clear()

    def getattr(self, obj: Any, attribute: str) -> Any:
        self._check()
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        self._check()
        return super().getitem(obj, argument)

    def _check(self) -> None:
        if time.monotonic() > self.deadline:
            raise BadTemplate(f"the template takes longer than {RENDER_S:g} s")


class RecordTemplate:
    """A compiled template; its names are the record's columns, and `item` is the whole record.

    A template that is one expression (`{{ answer }}`) has that value as it is; any other has a text.

    Raises:
      BadTemplate: it cannot be parsed, or uses what templates may not.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _TEMPLATE_CHARS:
            raise BadTemplate(f"a template may have {_TEMPLATE_CHARS >> 10} KB")
        self._environment = _Environment()
        try:
            tree = self._environment.parse(text)
            _require_bounded(tree)
            self._template = self._environment.from_string(text)
            self._value = self._environment.compile_expression(_inner(text)) if _is_one_expression(tree) else None
        except TemplateSyntaxError as error:
            raise BadTemplate(f"{error.message} (line {error.lineno})") from error
        except (RecursionError, OverflowError, ValueError) as error:
            raise BadTemplate("the template cannot be parsed") from error

    def render(self, record: dict[str, Any]) -> Any:
        """Return the template's value for a record.

        Raises:
          BadTemplate: the record has no such column or one of another type than the template needs; or the result is
            too large or takes too long.
        """
        names = {"item": record, **record}
        self._environment.deadline = time.monotonic() + RENDER_S
        try:
            text = _joined(self._template.generate(**names))  # also names a column that is missing
            return text if self._value is None else self._value(**names)
        except TemplateError as error:
            raise BadTemplate(error.message or type(error).__name__) from error
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            raise BadTemplate(f"{type(error).__name__}: {error}") from error


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> RecordTemplate:
    """Return the template of a text.

    Raises:
      BadTemplate: it is none.
    """
    return RecordTemplate(text)


def is_template(text: str) -> bool:
    """Whether a text is a template and not the name of a column."""
    return "{{" in text or "{%" in text


def _join(value: Iterable[Any], separator: Any = "") -> str:
    parts = [str(part) for part in value]
    between = str(separator)
    _require_room(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _replace(value: Any, old: Any, new: Any) -> str:
    text, gone, put = str(value), str(old), str(new)
    _require_room(len(text) + len(put) * text.count(gone))
    return text.replace(gone, put)


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the length of what a filter returns: a chain of `tojson` doubles it with each link."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, str):
            _require_room(len(result))
        return result

    return call


def _require_room(chars: int) -> None:
    if chars > RENDERED_CHARS:
        raise BadTemplate(f"the rendered template is longer than {RENDERED_CHARS >> 20} MB")


def _joined(parts: Iterable[str]) -> str:
    kept: list[str] = []
    length = 0
    for part in parts:
        length += len(part)
        _require_room(length)
        kept.append(part)
    return "".join(kept)


def _is_one_expression(tree: nodes.Template) -> bool:
    parts = tree.body[0].nodes if len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) else []
    return len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData)


def _inner(text: str) -> str:
    return text.strip().removeprefix("{{").removesuffix("}}").strip("-+ \n\t")


def _require_bounded(tree: nodes.Template) -> None:
    """Refuse what a record does not bound, by name and line."""
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            _refuse(node, f"{type(node).__name__.lower()} is not allowed in a template")
        if isinstance(node, nodes.Filter) and node.name == "tojson" and (node.args or node.kwargs):
            _refuse(node, "tojson takes no argument in a template")
    for node in _within(tree.body):
        if isinstance(node, nodes.For):
            _require_inner_loops(node, frozenset())


def _require_inner_loops(loop: nodes.For, outer: frozenset[str]) -> None:
    """What a loop does each time must concern its item, so that all loops together pass the record once."""
    if loop.recursive:
        _refuse(loop, "a recursive loop is not allowed in a template")
    if outer and _root(loop.iter) not in outer:
        _refuse(loop, "a loop in a loop must go through something of the outer loop's item")
    bound = {name.name for name in (loop.target, *loop.target.find_all(nodes.Name)) if isinstance(name, nodes.Name)}
    inner = frozenset({*bound, *outer, "loop"})
    for node in _within((*loop.body, *loop.else_)):
        if isinstance(node, nodes.For):
            _require_inner_loops(node, inner)
        elif (costly := _costly(node)) is not None and _root(costly) not in inner:
            _refuse(node, "within a loop, filters, `in`, `~`, `+` and slices are for the loop's item")


def _within(parts: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    """Yield nodes and what is in them; inner loops themselves, but not what is in those."""
    for part in parts:
        yield part
        if not isinstance(part, nodes.For):
            yield from _within(part.iter_child_nodes())


def _costly(node: nodes.Node) -> nodes.Node | None:
    """Return what a node passes as a whole, unless that is a constant."""
    match node:
        case nodes.Filter(node=whole) | nodes.Getitem(node=whole, arg=nodes.Slice()):
            pass
        case nodes.Compare(ops=[nodes.Operand(op="in" | "notin", expr=whole)]) | nodes.Add(right=whole):
            pass
        case nodes.Concat(nodes=parts):
            whole = next((part for part in parts if not isinstance(part, nodes.Const)), None)
        case _:
            return None
    return None if isinstance(whole, nodes.Const) else whole


def _root(expression: nodes.Node) -> str | None:
    while isinstance(expression, nodes.Getattr | nodes.Getitem | nodes.Filter) and expression.node is not None:
        expression = expression.node
    return expression.name if isinstance(expression, nodes.Name) else None


def _refuse(node: nodes.Node, reason: str) -> NoReturn:
    raise BadTemplate(f"{reason} (line {node.lineno})")
