"""Keeps a Python evaluator as it is, under another name, and adds a small function that calls it."""

import re
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, Rewritten, Wish, guessed_parameters
from evaluator_host.migrate.function import LEGACY
from evaluator_host.migrate.grammar import PYTHON
from evaluator_host.migrate.python.entry import parameter_of
from evaluator_host.migrate.python.imports import add_imports
from evaluator_host.migrate.python.scopes import names_of
from evaluator_host.migrate.python.text import quoted
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, descendants, parse, text
from evaluator_host.types.evaluator import Language

_FUNCTIONS: Final = ("function_definition", "lambda")


def adapt(code: str, wish: Wish) -> list[Rewritten]:
    """Write programs that keep the old code and adapt its interface, the simplest first.

    If functions of the code call the old function, it is renamed. If only module-level statements use it, the old code
    stays unchanged. In the last program, `evaluate` also accepts the four old arguments.

    Raises:
      Unreadable: the program cannot be parsed, or never mentions the function.
    """
    root = parse(code.encode(), Language.PYTHON)
    entry = wish.entry
    names = names_of(root)
    if entry not in names.module.bound and "main" in names.module.bound:
        return [_main_adapter(_draft(code, wish))]
    if not re.search(rf"\b{re.escape(entry)}\b", code):
        raise Unreadable(f"the code defines no function {entry}", missing=True)
    reads = [use for use in names.of(entry, names.module) if use.scope is not names.module]
    renamed = entry in names.module.bound and bool(reads) and not _is_imported(names.of(entry, names.module))
    found = [_adapter(_draft(code, wish), renamed=True)] if renamed else []
    return [*found, _adapter(_draft(code, wish)), _adapter(_draft(code, wish), takes_four=True)]


def _draft(code: str, wish: Wish) -> Draft:
    source = code.encode()
    root = parse(source, Language.PYTHON)
    return Draft(source, root, names_of(root), wish, PYTHON)


def _is_imported(uses: list[Use]) -> bool:
    return any(
        around is not None and around.type in ("dotted_name", "aliased_import")
        for around in (use.node.parent for use in uses)
    )


def _adapter(draft: Draft, *, renamed: bool = False, takes_four: bool = False) -> Rewritten:
    entry = draft.wish.entry
    old = _free(draft, f"legacy_{entry}")
    keyword = "async " if _is_async(draft) else ""
    lines = [
        f"score = {'await ' if keyword else ''}{old}({{}}, inputs, outputs, inputs[{quoted(draft, draft.wish.key)}])"
    ]
    lines.append("return float(score) if isinstance(score, str) else score")
    parameters = "inputs, outputs, trace"
    if takes_four:
        parameters += ", *fourth"
        lines = ["if fourth:", f"    return {old}(inputs, outputs, trace, *fourth)", *lines]
    if renamed:
        for use in draft.names.of(entry, draft.names.module):
            draft.edits.replace_node(use.node, old)
        head = ""
        draft.did(None, f"{entry} was renamed to {old}, and is otherwise unchanged")
    else:
        head = f"{old} = {entry}\n\n\n"
        draft.did(None, f"the old code is unchanged; {old} is a second name of its {entry}")
    draft.did(None, f"a new {entry}(inputs, outputs, trace) calls {old} with the arguments of the old contract")
    return _finish(draft, head, f"{keyword}def {entry}({parameters}):", lines)


def _main_adapter(draft: Draft) -> Rewritten:
    """Write a program with an `evaluate` that calls `main` with the variables that `main` takes."""
    function = next((one for one in _functions(draft) if text(child(one, "name") or one) == "main"), None)
    listing = child(function, "parameters") if function is not None else None
    nodes = code_children(listing) if listing is not None else []
    columns = tuple(found.name for found in map(parameter_of, nodes) if found is not None)
    stars = any(one.type == "dictionary_splat_pattern" for one in descendants(listing)) if listing is not None else True
    asynchronous = function is not None and any(one.type == "async" for one in function.children)
    lines = [
        'said = {"completion": outputs, "output": outputs, "outputs": outputs}',
        "variables = {**said, **inputs} if outputs is None else {**inputs, **said}",
    ]
    if not stars:
        named = ", ".join(quoted(draft, one) for one in columns)
        lines.append(f"variables = {{name: variables[name] for name in ({named},) if name in variables}}")
    lines.append(f"result = {'await ' if asynchronous else ''}main(**variables)")
    lines.append("return json.loads(result) if isinstance(result, str) else result")
    draft.did(None, "a new evaluate(inputs, outputs, trace) calls the unchanged main with its variables")
    draft.origin = "main"
    draft.columns = tuple(one for one in columns if one not in ("completion", "output", "outputs"))
    draft.parameters = ("", "", "completion", next(iter(draft.columns), draft.wish.key))
    return _finish(
        draft, "", f"{'async ' if asynchronous else ''}def evaluate(inputs, outputs, trace):", lines, imports=("json",)
    )


def _finish(draft: Draft, head: str, signature: str, lines: list[str], imports: tuple[str, ...] = ()) -> Rewritten:
    """Add the new function at the end, and imports of the modules that the old contract provided without an import."""
    if not draft.parameters:
        draft.parameters = _parameters(draft)
    add_imports(draft, imports)
    body = "".join(f"    {line}\n" for line in lines)
    end = "" if draft.source.endswith(b"\n") else "\n"
    draft.edits.insert(len(draft.source), f"{end}\n\n{head}{signature}\n{body}")
    return draft.finish()


def _free(draft: Draft, name: str) -> str:
    words = set(re.findall(r"\w+", draft.source.decode()))
    while name in words:
        name = f"_{name}"
    return name


def _functions(draft: Draft) -> list[Node]:
    return [one for one in descendants(draft.root) if one.type == "function_definition"]


def _is_async(draft: Draft) -> bool:
    """Return whether the entry is `async` and has no decorators, which may turn it into an ordinary function."""
    writes = [one for one in draft.names.of(draft.wish.entry, draft.names.module) if one.access is NameAccess.WRITE]
    node = writes[-1].node.parent if writes else None
    if node is None or node.type != "function_definition" or node.parent is None:
        return False
    return node.parent.type != "decorated_definition" and any(one.type == "async" for one in node.children)


def _parameters(draft: Draft) -> tuple[str, ...]:
    """Return the old parameters: those of the first function with four parameters, or a guess."""
    for node in descendants(draft.root):
        if node.type in _FUNCTIONS:
            listing = child(node, "parameters")
            found = [parameter_of(one) for one in code_children(listing)] if listing is not None else []
            named = [one.name for one in found if one is not None and one.name not in ("self", "cls")]
            if len(named) >= LEGACY:
                return tuple(named[-LEGACY:] if len(named) > LEGACY else named)
    return guessed_parameters(draft.source.decode())
