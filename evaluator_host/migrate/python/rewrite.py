"""Rewrites a Python evaluator's legacy signature to `evaluate(inputs, outputs, trace)`, and code that depends on it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.calls import rewrite_calls
from evaluator_host.migrate.draft import Draft, NewNames, Rewritten, Wish
from evaluator_host.migrate.function import Current, Legacy, Parameter, Spread
from evaluator_host.migrate.grammar import PYTHON
from evaluator_host.migrate.python.arguments import reads_whole_row, rewrite_settings, rewrite_truth
from evaluator_host.migrate.python.entry import entry_uses, find, wrappers
from evaluator_host.migrate.python.imports import add_imports
from evaluator_host.migrate.python.main import from_main, to_main
from evaluator_host.migrate.python.scopes import names_of
from evaluator_host.migrate.python.spread import rewrite_partial, rewrite_spread
from evaluator_host.migrate.python.text import docstring, insert_first, quoted
from evaluator_host.migrate.returned_text import convert_returned_text
from evaluator_host.migrate.scopes import NameAccess, Scope, Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, descendants, parse, text
from evaluator_host.migrate.uses import rename_parameters
from evaluator_host.types.evaluator import Language

_SEES_NAMES: Final = frozenset(("locals", "vars", "eval", "exec", "dir"))
_TRACE_NAMES: Final = ("trace", "_trace", "trace_", "_trace_")
_COMMA: Final = re.compile(rb"\s*,(?:\s*/\s*,)?[ \t]*(?:#[^\n]*)?(?:\n[ \t]*)?")
_MAPPING: Final = re.compile(r"(typing\.|t\.)?(Dict|dict|Mapping)\b")


def rewrite(code: str, wish: Wish) -> Rewritten:
    """Rewrite a Python program to the new signature.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    source = code.encode()
    root = parse(source, Language.PYTHON)
    draft = Draft(source, root, names_of(root), wish, PYTHON)
    if wish.to == "main":
        return to_main(draft)
    try:
        found = find(draft)
    except Current:
        return Rewritten(None, current=True)
    except Spread as spread:
        rewrite_spread(draft, spread)
        add_imports(draft)
        return draft.finish()
    except Unreadable as error:
        if error.missing and "main" in draft.names.module.bound:
            return from_main(draft)
        if not error.missing and rewrite_partial(draft, entry_uses(draft)[-1]):
            add_imports(draft)
            return draft.finish()
        raise
    draft.whole_row = reads_whole_row(draft, found[0])
    draft.parameters = tuple(one.name for one in found[0].parameters)
    for legacy in found:
        inner = wrappers(draft, legacy.node)
        _rewrite_function(draft, legacy, [(name, draft.names.module) for name in _names_of_function(draft, legacy)])
        for decorator, wrapper in inner:
            _rewrite_function(draft, wrapper, _wrapped_names(draft, wrapper))
            draft.did(decorator, f"the wrapper function in {text(decorator)} is rewritten too")
    add_imports(draft)
    return draft.finish()


def _wrapped_names(draft: Draft, wrapper: Legacy) -> list[tuple[str, Scope]]:
    """Return the names, each with its scope, by which a function inside a decorator calls the decorated function."""
    found = {}
    for use in draft.names.within(wrapper.scope):
        owner, around = draft.names.owner(use), use.node.parent
        called = around is not None and around.type == "call" and child(around, "function") == use.node
        if called and owner is not None and owner.kind == "function" and not owner.is_within(wrapper.scope):
            found[use.name] = owner
    return list(found.items())


def _rewrite_function(draft: Draft, legacy: Legacy, names_of_it: Sequence[tuple[str, Scope]]) -> None:
    dynamic = _dynamic(draft, legacy)
    if dynamic is not None:
        draft.did(dynamic, f"{text(dynamic)[:40]} can see variable names, so inputs and outputs keep their old names")
    every = dynamic is not None and dynamic.type == "call"
    names = _new_names(draft, legacy, dynamic=dynamic is not None)
    _docstring(draft, legacy)
    rewrite_signature(draft, legacy, names)
    rewrite_calls(draft, legacy, names, uses=_calls(draft, legacy, names_of_it), key=quoted(draft, draft.wish.key))
    first = [
        rewrite_settings(draft, legacy, dynamic=dynamic is not None, every=every),
        rewrite_truth(draft, legacy, names.inputs, dynamic=dynamic is not None, every=every),
    ]
    convert_returned_text(draft, legacy)
    insert_first(draft, legacy.node, [line for line in first if line is not None])


def _calls(draft: Draft, legacy: Legacy, callables: Sequence[tuple[str, Scope]]) -> Iterator[Use]:
    """Yield the uses of the function's names, each with its scope. All of them must be calls."""
    for name, owner in callables:
        for use in draft.names.of(name, owner):
            if owner.kind == "function" and not use.scope.is_within(legacy.scope):
                continue  # a decorator may pass the function to functools.wraps
            around = use.node.parent
            kind = around.type if around is not None else ""
            alias = kind == "assignment" and use.access is NameAccess.READ and use.scope.kind == "module"
            if not alias and kind != "attribute":  # a read such as `evaluate.__name__` is not a call
                yield use


def _names_of_function(draft: Draft, legacy: Legacy) -> list[str]:
    own = child(legacy.node, "name")
    return list(dict.fromkeys((draft.wish.entry, *((text(own),) if own is not None else ()))))


def _dynamic(draft: Draft, legacy: Legacy) -> Node | None:
    """Return the first node in a function that can read variables by name (`locals()`, `{x=}`), or None."""
    for use in draft.names.within(legacy.scope):
        around = use.node.parent
        called = around is not None and around.type == "call" and child(around, "function") == use.node
        if use.name in _SEES_NAMES and called and draft.names.owner(use) is None and not _has_names(use, around):
            return around
    own = {one.name for one in legacy.parameters}
    for node in descendants(legacy.node):
        shows_names = node.type == "interpolation" and any(one.type == "=" for one in node.children)
        if shows_names and own & {text(one) for one in descendants(node) if one.type == "identifier"}:
            return node
    return None


def _has_names(use: Use, call: Node | None) -> bool:
    """Return whether a call to `eval`, `exec`, `vars` or `dir` gets the variables in which to look up names."""
    listing = child(call, "arguments") if call is not None else None
    count = len(code_children(listing)) if listing is not None else 0
    return count >= (2 if use.name in ("eval", "exec") else 1)


def _new_names(draft: Draft, legacy: Legacy, *, dynamic: bool) -> NewNames:
    """Return the new parameters' names: those of the contract, changed where the code already uses them."""
    second, third = legacy.parameters[1], legacy.parameters[2]
    wanted = {second.name: "inputs", third.name: "outputs"}
    if dynamic:
        wanted = {second.name: second.name, third.name: third.name}
    wanted = rename_parameters(draft, legacy, wanted)
    taken = {use.name for use in draft.names.within(legacy.scope)} - {legacy.parameters[3].name} | set(wanted.values())
    taken |= {legacy.parameters[3].name} if len(draft.names.of(legacy.parameters[3].name, legacy.scope)) > 1 else set()
    trace = next((name for name in _TRACE_NAMES if name not in taken), "_unused_trace")
    return NewNames(wanted[second.name], wanted[third.name], trace)


def _docstring(draft: Draft, legacy: Legacy) -> None:
    body = child(legacy.node, "body")
    doc = docstring(body) if body is not None and legacy.has_statements else None
    if doc is None:
        return
    gone = [legacy.parameters[0].name, legacy.parameters[3].name]
    named = [name for name in gone if re.search(rf"\b{re.escape(name)}\b", text(doc))]
    if named:
        draft.left(doc, f"the docstring still mentions {' and '.join(named)}")


def rewrite_signature(draft: Draft, legacy: Legacy, names: NewNames) -> None:
    """Replace the parameters of the function with the new ones. Keep the layout of the source."""
    first, second, third, fourth = legacy.parameters
    comma = _COMMA.match(draft.source, first.node.end_byte)
    end = comma.end() if comma is not None else second.node.start_byte
    draft.edits.replace(first.node.start_byte, min(end, second.node.start_byte))
    for parameter, name in ((second, names.inputs), (third, names.outputs)):
        if parameter.name != name:
            draft.edits.replace_node(parameter.pattern, name)
    draft.edits.replace_node(fourth.node, names.trace + _annotation(draft, legacy) + _default(second, third, fourth))
    draft.drop_comment_behind(fourth.node)
    old = ", ".join(one.name for one in legacy.parameters)
    draft.did(legacy.node, f"({old}) became ({names.inputs}, {names.outputs}, {names.trace})")


def _annotation(draft: Draft, legacy: Legacy) -> str:
    """Return the annotation for the parameter `trace`; empty if the function has no annotations."""
    second = legacy.parameters[1].annotation
    if all(one.annotation is None for one in legacy.parameters):
        return ""
    if second is not None and _MAPPING.match(text(second)):
        name = text(second).partition("[")[0]
        return f": {name}[str, Any]" if _has(draft, "Any") and "[" in text(second) else f": {name}"
    if _has(draft, "Dict") and _has(draft, "Any"):
        return ": Dict[str, Any]"
    return ": dict[str, Any]" if _has(draft, "Any") else ": dict"


def _has(draft: Draft, name: str) -> bool:
    return name in draft.names.module.bound


def _default(second: Parameter, third: Parameter, fourth: Parameter) -> str:
    if second.default is None and third.default is None:
        return ""
    annotated = any(one.annotation is not None for one in (second, third, fourth))
    return " = None" if annotated else "=None"
