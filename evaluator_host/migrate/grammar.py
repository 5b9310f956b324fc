"""A table for each language: its types of syntax nodes and names of fields, and pieces of code to write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.edits import Part
from evaluator_host.migrate.kinds import TextKind


@dataclass(frozen=True, slots=True)
class Grammar:
    """The table for one language: types of syntax nodes, names of fields, and pieces of new code.

    Attributes:
      functions: Definitions of functions, with or without a name.
      classes: Definitions of classes.
      block: Body of a function that has statements.
      call: A call; its fields are `function` and `arguments`.
      arguments: The arguments of a call, with the brackets.
      null: The literal for a missing value, such as `None`.
      table: How to write a dict or object that includes another one: opening, spread and closing, as in `{**inputs}`.
      member: Node that reads a member of a value, `value.name`, and its field that contains the value.
      entries: Nodes that read an entry of a value, `value[key]`, each with its field that contains the value.
      conditional: An expression with a condition, and the positions of its two branches.
      binary: An operator between two values.
      wrappers: Nodes whose value is that of their only child.
      descends: The `wrappers` inside which the child is converted to a number, if it is text.
      texts: Literals that are text.
      numbers: Literals that are numbers.
      is_text: Function that returns whether a literal is text that may be a number. Bytes, empty text and spaces are
        not.
      is_wrapped: Function that returns whether a function is async or decorated, so that a call to it may return
        another value than its body does.
      values: Statements that give a variable a value, each with the field that contains the value.
      declares: Statements of `values` that may leave the variable without a value.
      tables: Statements that give a dict or object its name, each with the field that contains the dict or object.
      table_literals: Literals of dicts or objects.
      pairs: Entries of a dict or object that have a field `value`.
      text_makers: Functions of the language that return text.
      number_makers: Functions of the language that return a number.
      text_methods: Methods that return text.
      by_receiver: Whether one of `text_methods` returns text only if it is called on text.
      used: Names that the code of a conversion to a number uses.
      to_number: Code before and after a value that is converted to a number.
      number_if_text: Function that returns the parts of an expression that converts a value only if it is text.
      number_types: Declared types of results, each with the type after the conversion.
      sum_kind: Function that returns the kind of an operation's value, given the operator and the kinds of both sides.
    """

    functions: frozenset[str]
    classes: tuple[str, ...]
    block: str
    call: str
    arguments: str
    null: str
    table: tuple[str, str, str]
    member: tuple[str, str]
    entries: Mapping[str, str]
    conditional: tuple[str, int, int]
    binary: str
    wrappers: frozenset[str]
    descends: tuple[str, ...]
    texts: frozenset[str]
    numbers: frozenset[str]
    is_text: Callable[[str], bool]
    is_wrapped: Callable[[Node], bool]
    values: Mapping[str, str]
    declares: tuple[str, ...]
    tables: Mapping[str, str]
    table_literals: frozenset[str]
    pairs: tuple[str, ...]
    text_makers: frozenset[str]
    number_makers: frozenset[str]
    text_methods: frozenset[str]
    by_receiver: bool
    used: tuple[str, ...]
    to_number: tuple[str, str]
    number_if_text: Callable[[Part], tuple[Part, ...]]
    number_types: Mapping[str, str]
    sum_kind: Callable[[str, TextKind, TextKind], TextKind]


def _python_sum(_operator: str, left: TextKind, right: TextKind) -> TextKind:
    return (
        TextKind.TEXT
        if left is TextKind.TEXT or (left, right) == (TextKind.UNKNOWN, TextKind.TEXT)
        else TextKind.UNKNOWN
    )


def _javascript_sum(operator: str, left: TextKind, right: TextKind) -> TextKind:
    return TextKind.TEXT if operator == "+" and TextKind.TEXT in (left, right) else TextKind.UNKNOWN


PYTHON: Final = Grammar(
    functions=frozenset(("function_definition", "lambda")),
    classes=("class_definition",),
    block="block",
    call="call",
    arguments="argument_list",
    null="None",
    table=("{", "**", "}"),
    member=("attribute", "object"),
    entries={"subscript": "value"},
    conditional=("conditional_expression", 0, 2),
    binary="binary_operator",
    wrappers=frozenset(("parenthesized_expression", "await")),
    descends=("parenthesized_expression",),
    texts=frozenset(("string", "concatenated_string")),
    numbers=frozenset(("integer", "float")),
    is_text=lambda literal: not literal.lower().startswith(("b", "rb", "br")),
    is_wrapped=lambda node: node.parent is None or node.parent.type == "decorated_definition",
    values={"assignment": "right"},
    declares=(),
    tables={"assignment": "right"},
    table_literals=frozenset(("dictionary", "list", "tuple")),
    pairs=("pair",),
    text_makers=frozenset(("str", "format")),
    number_makers=frozenset(("float", "int", "len", "round", "abs", "sum")),
    text_methods=frozenset(
        ("format", "join", "strip", "lstrip", "rstrip", "lower", "upper", "zfill", "replace", "rjust", "ljust")
    ),
    by_receiver=True,
    used=("float", "str", "isinstance"),
    to_number=("float(", ")"),
    number_if_text=lambda value: ("float(", value, ") if isinstance(", value, ", str) else ", value),
    number_types={},
    sum_kind=_python_sum,
)
JAVASCRIPT: Final = Grammar(
    functions=frozenset(
        (
            *("function_declaration", "function_expression", "arrow_function", "method_definition"),
            *("generator_function_declaration", "generator_function"),
        )
    ),
    classes=("class_declaration", "class"),
    block="statement_block",
    call="call_expression",
    arguments="arguments",
    null="null",
    table=("{ ", "...", " }"),
    member=("member_expression", "object"),
    entries={"subscript_expression": "object", "member_expression": "object"},
    conditional=("ternary_expression", 1, 2),
    binary="binary_expression",
    wrappers=frozenset(
        ("parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression", "await_expression")
    ),
    descends=(),
    texts=frozenset(("string", "template_string")),
    numbers=frozenset(("number",)),
    is_text=lambda literal: bool(literal[1:-1].strip()),
    is_wrapped=lambda node: any(one.type == "async" for one in node.children),
    values={"variable_declarator": "value", "assignment_expression": "right"},
    declares=("variable_declarator",),
    tables={"variable_declarator": "value", "enum_declaration": "body"},
    table_literals=frozenset(("object", "array", "enum_body")),
    pairs=("pair", "enum_assignment"),
    text_makers=frozenset(("String",)),
    number_makers=frozenset(("Number", "parseFloat", "parseInt")),
    text_methods=frozenset(
        ("toFixed", "toPrecision", "toString", "trim", "toLowerCase", "toUpperCase", "padStart", "padEnd", "join")
    ),
    by_receiver=False,
    used=("Number",),
    to_number=("Number(", ")"),
    number_if_text=lambda value: ("typeof ", value, " === 'string' ? Number(", value, ".trim() || NaN) : ", value),
    number_types={"string": "number", "Promise<string>": "Promise<number>"},
    sum_kind=_javascript_sum,
)
