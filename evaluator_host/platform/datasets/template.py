"""Renders templates in a safe part of Jinja's syntax: the size of the record limits the time and memory of rendering.

Jinja's sandbox prevents access to dangerous attributes, but not `{{ "x" * 10**9 }}`, `|center(10**9)` or nested loops.
Therefore a check at parse time allows only lookups, comparisons, conditions, loops over values of the record, and the
filters below. The strings that `~`, `+` and the filters produce are limited in length, and nothing is computed while a
template is compiled. A host compiles and renders callers' templates only in a limited process, see
`datasets.rendering`.
"""

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.filters import FILTERS
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDERED_CHARS: Final = 4 << 20
RENDER_S: Final = 0.5
_TEMPLATE_CHARS: Final = 64 << 10
_JOINED_VALUES: Final = 256  # maximum number of values that a template may join with `~` and `+`
_DIGITS: Final = 20  # maximum number of digits for `round`, before or after the decimal point
_REASON_CHARS: Final = 300

_FILTERS: Final = (
    *("capitalize", "count", "d", "default", "escape", "first", "float", "int", "items", "join", "last", "length"),
    *("list", "lower", "replace", "round", "sort", "string", "title", "tojson", "trim", "upper"),
)
_TESTS: Final = (
    *("boolean", "defined", "divisibleby", "eq", "even", "false", "float", "ge", "gt", "in", "integer", "iterable"),
    *("le", "lt", "mapping", "ne", "none", "number", "odd", "sequence", "string", "true", "undefined"),
)
_ASKING: Final = ("d", "default", "defined", "undefined")
"""Filters and tests with which a template can handle a missing column."""
_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For),
    *(nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.CondExpr),
    *(nodes.Concat, nodes.Add, nodes.Sub, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword),
)
_JOINS: Final = (nodes.Concat, nodes.Add, nodes.Sub)


class BadTemplate(Exception):
    """A template is not valid, or does not fit a record. The message says why and, if known, in which line."""


class _CodeGenerator(CodeGenerator):
    """Generates code that calls `_Environment.concatenate` for `~`, and that computes constants while rendering."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja calls it by this name
        self.write("environment.concatenate((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


class _Environment(ImmutableSandboxedEnvironment):
    """Checks the processor time at lookups, filters and joins. A slow loop always does one of these."""

    intercepted_binops = frozenset({"+"})
    code_generator_class = _CodeGenerator

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, optimized=False)
        self.deadline = float("inf")
        own = {"join": _join, "replace": _replace, "round": _round}
        self.filters = {name: self._bounded(own.get(name, self.filters[name])) for name in _FILTERS}
        self.tests = {name: self.tests[name] for name in _TESTS}
        self.globals.clear()

    def getattr(self, obj: Any, attribute: str) -> Any:
        self.check_time()
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        self.check_time()
        return super().getitem(obj, argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.check_time()
        if isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            _require_room(len(left) + len(right))
        return super().call_binop(context, operator, left, right)

    def concatenate(self, values: Iterable[Any]) -> str:
        """Return values joined into one string; the code that `_CodeGenerator` generates calls this."""
        self.check_time()
        return _joined(map(str, values))

    def check_time(self) -> None:
        if time.process_time() > self.deadline:
            raise BadTemplate(f"the template takes longer than {RENDER_S:g} s")

    def _bounded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter that also checks the length of its result. Each `tojson` in a chain may double the length."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.check_time()
            result = function(*args, **kwargs)
            if isinstance(result, str):
                _require_room(len(result))
            return result

        return call


def names_needed(text: str) -> list[str]:
    """Return the columns that a template needs.

    The list is empty if the template is not valid, or tests whether a column exists.
    """
    try:
        tree = _Environment().parse(text)
    except (TemplateSyntaxError, RecursionError, OverflowError, ValueError, MemoryError):
        return []
    asks = [*tree.find_all((nodes.Filter, nodes.Test, nodes.If, nodes.CondExpr))]
    if any(getattr(one, "name", "default") in _ASKING for one in asks):
        return []
    return sorted(find_undeclared_variables(tree) - {"item"})


class RecordTemplate:
    """A compiled template. Names in a template are columns of the record, and `item` is the whole record.

    A template of one expression (`{{ answer }}`) renders to the value; any other template renders to a string.

    Raises:
      BadTemplate: the template cannot be parsed, or uses a construct that is not allowed.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _TEMPLATE_CHARS:
            raise BadTemplate(f"the template is longer than {_TEMPLATE_CHARS >> 10} KB")
        self._environment = _Environment()
        try:
            tree = self._environment.parse(text)
            _require_bounded(tree)
            self._template = self._environment.from_string(text)
            inner = text.strip().removeprefix("{{").removesuffix("}}").strip("-+ \n\t")
            self._value = self._environment.compile_expression(inner) if _is_one_expression(tree) else None
        except TemplateSyntaxError as error:
            raise BadTemplate(f"{error.message} (line {error.lineno})") from error
        except (RecursionError, OverflowError, ValueError, MemoryError, SyntaxError) as error:
            raise BadTemplate("the template cannot be parsed: it is too long or nested too deeply") from error

    def render(self, record: dict[str, Any]) -> Any:
        """Return the template rendered with a record.

        Raises:
          BadTemplate: the record lacks a column, a column has the wrong type, or the result is too large or takes too
            long.
        """
        names = {"item": record, **record}
        self._environment.deadline = time.process_time() + RENDER_S
        try:
            # render the template even if only its value is needed: a missing column then raises an error that names it
            text = _joined(self._checked(self._template.generate(**names)))
            return text if self._value is None else self._value(**names)
        except TemplateError as error:
            raise BadTemplate((error.message or type(error).__name__)[:_REASON_CHARS]) from error
        except MemoryError as error:
            raise BadTemplate("the template takes too much memory") from error
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            raise BadTemplate(f"{type(error).__name__}: {error}"[:_REASON_CHARS]) from error

    def _checked(self, parts: Iterable[str]) -> Iterator[str]:
        for part in parts:
            self._environment.check_time()
            yield part


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> RecordTemplate:
    """Return the compiled form of a template, from a cache.

    Raises:
      BadTemplate: the template is not valid.
    """
    return RecordTemplate(text)


def _join(value: Iterable[Any], separator: Any = "") -> str:
    parts: list[str] = []
    between, length = str(separator), 0
    for part in value:
        parts.append(str(part))
        length += len(parts[-1]) + len(between)
        _require_room(length)
    return between.join(parts)


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    """Round as Jinja does, but only to 20 digits, because Python would compute 10**precision for any precision."""
    if not isinstance(precision, int) or abs(precision) > _DIGITS:
        raise BadTemplate(f"round takes a precision of -{_DIGITS} to {_DIGITS}")
    return FILTERS["round"](value, precision, method)


def _replace(value: Any, old: Any, new: Any) -> str:
    text, gone, put = str(value), str(old), str(new)
    _require_room(len(text) + len(put) * text.count(gone))
    return text.replace(gone, put)


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


def _require_bounded(tree: nodes.Template) -> None:
    """Raise BadTemplate if the cost of a construct depends on more than the record. The error names the line."""
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            _refuse(node, f"{type(node).__name__.lower()} is not allowed in a template")
        if isinstance(node, nodes.Filter) and node.name == "tojson" and (node.args or node.kwargs):
            _refuse(node, "tojson cannot have an argument in a template")
    joined = sum(len(node.nodes) if isinstance(node, nodes.Concat) else 1 for node in tree.find_all(_JOINS))
    if joined > _JOINED_VALUES:
        raise BadTemplate(f"`~`, `+` and `-` may join at most {_JOINED_VALUES} values in a template, not {joined}")
    for node in _within(tree.body):
        if isinstance(node, nodes.For):
            _require_inner_loops(node, frozenset())


def _require_inner_loops(loop: nodes.For, outer: frozenset[str]) -> None:
    """Check that filters and other costly constructs in a loop use only the loop's item, not the whole record."""
    if loop.recursive:
        _refuse(loop, "a recursive loop is not allowed in a template")
    if outer and _root(loop.iter) not in outer:
        _refuse(loop, "an inner loop must iterate over a value of the outer loop's item")
    bound = {name.name for name in (loop.target, *loop.target.find_all(nodes.Name)) if isinstance(name, nodes.Name)}
    inner = frozenset({*bound, *outer, "loop"})
    for node in _within((*loop.body, *loop.else_)):
        if isinstance(node, nodes.For):
            _require_inner_loops(node, inner)
        elif (costly := _costly(node)) is not None and _root(costly) not in inner:
            _refuse(node, "in a loop, filters, `in`, `~`, `+` and slices may use only the loop's item")


def _within(parts: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    """Yield nodes and their descendants, except the descendants of inner loops."""
    for part in parts:
        yield part
        if not isinstance(part, nodes.For):
            yield from _within(part.iter_child_nodes())


def _costly(node: nodes.Node) -> nodes.Node | None:
    """Return the operand that a filter, a slice, `in`, `~` or `+` reads as a whole.

    Return None for other nodes, or if the operand is a constant.
    """
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
