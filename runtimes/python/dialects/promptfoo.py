"""Runs promptfoo's Python assertions (dialect `promptfoo`): a function `get_assert(output, context)`, or inline code.

An inline assertion is an expression or the body of a function. The code may contain variables, such as `{{name}}` and
`{{a.b}}`. For each row, their values are put into the code before the code is compiled.
"""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure
from evaluator_runner.outline import Outline
from evaluator_runner.prebound import unbound_names
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from evaluator_runner.outline import Function

CONTRACT = "promptfoo"
WORDS = ("get_assert", "output", "context")
PREBOUND = False
_ENTRY = "get_assert"
_ARGUMENTS = ("output", "context")
_ONLY_AST = 0x400
_FIELDS = {"vars", "pass", "pass_", "providerResponse", "logProbs"}
"""Keys of the context, and of an assertion's result."""


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise the function `get_assert`, or code that looks like an inline assertion.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    if name in {None, _ENTRY} and _ENTRY in outline.functions:
        return dialects.NAMED, f"function `{_ENTRY}`"
    functions = [one for one in outline.functions.values() if name in {None, one.name} and _is_assert(one)]
    if functions and (name is not None or not outline.has_own_entry):
        return dialects.ANY_NAME, f"`{functions[0].name}` takes (output, context), like promptfoo's get_assert"
    if name is not None or outline.classes or "evaluate" in outline.functions or "main" in outline.functions:
        return None
    if outline.is_expression and outline.names & {"output", "context"}:
        return dialects.SHAPED, "the code is a single expression of `output` and `context`"
    if outline.returns and (
        outline.names & {"output", "context"} or not outline.names & {"inputs", "outputs", "trace"}
    ):
        return dialects.SHAPED, "the code is the body of a function"
    return None


def _is_assert(function: Function) -> bool:
    """Return whether a function's parameters are an output and promptfoo's context object, and not a context string."""
    if tuple(function.parameters) != _ARGUMENTS or function.name in {"evaluate", "main"}:
        return False
    kind = function.annotations[1].rpartition(".")[2]
    return kind in {"dict", "Dict"} or kind.startswith("Assertion") or bool(_FIELDS & set(function.constants()))


def source(code: str) -> str:
    """Return the code to run when the evaluator is loaded, or "" for an inline assertion, which is compiled later."""
    return "" if _is_inline(code) else code


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `get_assert`, or runs the inline assertion.

    Raises:
      Failure: there is no such function, or the inline assertion cannot be compiled.
    """
    text = namespace["__loader__"].get_source("evaluator")
    if not _is_inline(text):
        return _function(namespace, name or _only(namespace, Outline(text)))
    if "_getattr_" in namespace:
        raise Failure("policy_violation", "an inline assert cannot run under the policy restricted")
    has_template = "{{" in text or "{%" in text
    found = entry.Entry("inline assert", (_templated if has_template else _call)(text, namespace))
    found.reason = "an inline assert"
    return found


def _only(namespace: dict[str, Any], outline: Outline) -> str:
    """Return `get_assert`, or the name of the only function in the code that looks like an assertion.

    Raises:
      Failure: there are several such functions.
    """
    functions = outline.functions.values()
    own = [one.name for one in functions if _is_assert(one)]
    # if there is no such function, the contract was declared, so parameters with the right names are enough
    own = own or [one.name for one in functions if tuple(one.parameters) == _ARGUMENTS]
    if _ENTRY in namespace or not own:
        return _ENTRY
    return candidates.the_only(namespace, own, "assert functions")


def _function(namespace: dict[str, Any], name: str) -> entry.Entry:
    holder, _, method = name.partition(".")
    if method and hasattr(namespace.get(holder), method):
        return entry.Entry(name, getattr(namespace[holder], method))
    return entry.find_function(namespace, name, _ARGUMENTS)


def _is_inline(code: str) -> bool:
    outline = Outline(code)
    if outline.functions and not outline.returns:
        asserts = any(name == _ENTRY or _is_assert(one) for name, one in outline.functions.items())
        return not asserts and bool(unbound_names(code, FILENAME, frozenset(_ARGUMENTS)))
    return outline.is_expression or outline.returns or not (outline.parsed or "def get_assert" in code)


def _call(text: str, namespace: dict[str, Any]) -> Any:
    """Compile the text to a function of output and context: a single line is an expression, more lines are a body."""
    text = text.strip("\n").rstrip()
    names = {**namespace, "json": __import__("json")}
    lines = text.strip().splitlines()
    if len(lines) == 1:
        compiled = compile(text.strip(), FILENAME, "eval", dont_inherit=True)
        return lambda output, context: eval(compiled, {**names, "output": output, "context": context})  # noqa: S307
    exec(_as_function(_dedented(text)), names)  # noqa: S102
    return names[_ENTRY]


def _as_function(body: str) -> CodeType:
    """Compile a module that defines `get_assert` with this body; errors refer to the body's lines and columns."""
    made: Any = compile(f"def {_ENTRY}(output, context): pass", FILENAME, "exec", _ONLY_AST, dont_inherit=True)
    made.body[0].body = compile(body, FILENAME, "exec", _ONLY_AST, dont_inherit=True).body  # type: ignore[attr-defined]
    return compile(made, FILENAME, "exec", dont_inherit=True)


def _dedented(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join([line.removeprefix(indent) for line in text.splitlines()]) if indent else text


def _templated(text: str, namespace: dict[str, Any]) -> Any:
    parts = _parts(text)

    def run(output: Any, context: Any) -> Any:
        values = context.get("vars") or {}
        filled = "".join([part if type(part) is str else _shown(_value(values, part)) for part in parts])
        return _call(filled, namespace)(output, context)

    return run


def _parts(text: str) -> list[Any]:
    """Split the text into pieces: strings of plain text, and for each variable its path as a list of keys.

    Raises:
      Failure: the braces contain more than the path of a variable.
    """
    if "{%" in text or "{#" in text:
        raise _too_much("{%")
    pieces = text.split("{{")
    parts: list[Any] = [pieces[0]]
    for piece in pieces[1:]:
        inner, closed, rest = piece.partition("}}")
        path = inner.strip().replace("[", ".").replace("]", "").replace("'", "").replace('"', "").split(".")
        if not closed or not all(one.replace("-", "_").isidentifier() or one.isdigit() for one in path):
            raise _too_much("{{" + inner[:60] + "}}")
        parts += [path, rest]
    return parts


def _too_much(what: str) -> Failure:
    return Failure(
        "syntax_error",
        f"a template may contain only the path of a variable, such as {{{{name}}}} or {{{{a.b}}}}, not {what}",
        hint="read the variable in the code instead: context['vars']['name']",
    )


def _value(values: Any, path: list[str]) -> Any:
    for key in path:
        try:
            values = values[int(key)] if isinstance(values, list) else values.get(key)
        except (AttributeError, IndexError, ValueError):
            return None
    return values


def _shown(value: Any) -> str:
    """Convert a value to text as promptfoo's templates do."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join([_shown(one) for one in value])
    return "[object Object]" if isinstance(value, dict) else str(value)
