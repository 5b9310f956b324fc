"""Keeps the code of a JavaScript evaluator under another name, and adds a small function that calls it."""

import re
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, Rewritten, Wish, guessed_parameters
from evaluator_host.migrate.function import LEGACY
from evaluator_host.migrate.grammar import JAVASCRIPT
from evaluator_host.migrate.javascript.entry import parameter_of
from evaluator_host.migrate.javascript.scopes import FUNCTIONS, names_of
from evaluator_host.migrate.javascript.text import member, semicolon
from evaluator_host.migrate.scopes import NameAccess
from evaluator_host.migrate.syntax import Unreadable, child, code_children, descendants, parse, text
from evaluator_host.migrate.uses import replace_use
from evaluator_host.types.evaluator import Language

_DECLARED: Final = ("function_declaration", "generator_function_declaration", "class_declaration")
_TYPES: Final = "Record<string, any>"


@dataclass(frozen=True, slots=True)
class _Old:
    """The old function in the edited program, and the code with which the new function calls it.

    Attributes:
      callee: The expression for the old function in a call.
      before: A statement that must be above the new function.
      opening: The text before the new function's parameters.
      closing: The text after the new function's body.
    """

    callee: str
    before: str = ""
    opening: str = ""
    closing: str = ""


def adapt_javascript(code: str, wish: Wish) -> list[Rewritten]:
    """Write JavaScript programs that keep the old code and adapt its interface, the simplest first.

    Raises:
      Unreadable: the program cannot be parsed, or has no function of that name to export.
    """
    return _adapters(code, wish, Language.JAVASCRIPT)


def adapt_typescript(code: str, wish: Wish) -> list[Rewritten]:
    """Write TypeScript programs that keep the old code and adapt its interface, the simplest first.

    Raises:
      Unreadable: the program cannot be parsed, or has no function of that name to export.
    """
    return _adapters(code, wish, Language.TYPESCRIPT)


def _adapters(code: str, wish: Wish, language: Language) -> list[Rewritten]:
    found: list[Rewritten] = []
    for takes_four in (False, True):
        for method in (False, True):
            source = code.encode()
            root = parse(source, language)
            draft = Draft(source, root, names_of(root), wish, JAVASCRIPT)
            adapter = _Adapter(draft, language, takes_four=takes_four, method=method)
            made = adapter.build()
            if made is not None and all(made.code != one.code for one in found):
                found.append(made)
    return found


class _Adapter:
    """Builds one adapted program."""

    def __init__(self, draft: Draft, language: Language, *, takes_four: bool, method: bool) -> None:
        self._draft = draft
        self._typed = language is Language.TYPESCRIPT
        self._takes_four = takes_four
        self._method = method
        self._is_main = False
        self._entry = draft.wish.entry
        self._new = self._entry
        self._is_async = True  # assumed until the code shows that the function is not async

    def build(self) -> Rewritten | None:
        """Build the adapted program.

        With the option `method`, the old function is called as a method of the export; return None if that makes no
        difference.
        """
        old = self._exported() or self._declared(self._entry)
        if old is None and (old := self._declared("main")) is not None:
            self._is_main, self._new = True, "evaluate"
        if old is None:
            raise Unreadable(f"the code defines no function {self._entry}", missing=True)
        if self._method and not old.closing and "." not in old.callee:
            return None
        self._draft.did(None, f"the old code is unchanged; the new {self._new} calls its function as {old.callee}")
        return self._finish(old)

    def _exported(self) -> _Old | None:
        """Remove the old function from the module's exports, and return it. None if the module does not export it."""
        found = None
        for statement in self._draft.root.named_children:
            if statement.type == "export_statement":
                found = self._from_export(statement) or found
            elif statement.type == "expression_statement":
                found = self._from_assignment(statement) or found
        return found

    def _from_assignment(self, statement: Node) -> _Old | None:
        """Adapt `module.exports = …`, `exports.evaluate = …` and the like; return None for other statements."""
        assignment = statement.named_children[0]
        left, right = child(assignment, "left"), child(assignment, "right")
        if assignment.type != "assignment_expression" or left is None or right is None:
            return None
        place = text(left).replace(" ", "")
        if place == "module.exports" and right.type == "object":
            if not re.search(rf"\b{re.escape(self._entry)}\b", text(right)):
                return None
            place = member(self._draft, place, self._entry)
        elif place not in ("module.exports", *(f"{home}.{self._entry}" for home in _HOMES)):
            return None
        self._look(right)
        name = self._free()
        end = semicolon(self._draft)
        if (self._method or right.type in _OBJECTS) and place == "module.exports":
            return _Old(f"{name}.{self._entry}", f"const {name} = {place}{end}", f"{place} = ", end)
        home = place.removesuffix(f".{self._entry}")
        opening = place if home == place else member(self._draft, home, self._new)
        return _Old(name, f"const {name} = {place}{end}", f"{opening} = ", end)

    def _from_export(self, statement: Node) -> _Old | None:
        value = child(statement, "value") or child(statement, "declaration")
        if any(one.type == "default" for one in statement.children) and value is not None:
            return self._from_default(statement, value)
        if value is not None:
            return self._from_declaration(statement, value)
        clause = next((one for one in statement.named_children if one.type == "export_clause"), None)
        specifiers = code_children(clause) if clause is not None else []
        for one in specifiers:
            name, alias = child(one, "name"), child(one, "alias")
            if name is not None and text(alias or name) == self._entry:
                return self._from_specifier(statement, one, specifiers)
        return None

    def _from_default(self, statement: Node, value: Node) -> _Old | None:
        """Adapt `export default …`: name the old value, and export the new function; return None for a class."""
        name, draft = self._free(), self._draft
        own = child(value, "name") if value.type in _DECLARED else None
        opening = "export default "
        closing = semicolon(draft)
        self._look(value)
        if own is not None:
            draft.edits.replace(statement.start_byte, value.start_byte)
            self._rename(text(own), name)
        elif value.type == "identifier":
            draft.edits.replace(statement.start_byte, statement.end_byte, f"const {name} = {text(value)}{closing}")
        else:
            draft.edits.replace(statement.start_byte, value.start_byte, f"const {name} = ")
        if own is not None and value.type == "class_declaration":
            return None
        if self._method or value.type in _OBJECTS:
            return _Old(f"{name}.{self._entry}", "", opening)
        return _Old(name, "", opening)

    def _from_declaration(self, statement: Node, value: Node) -> _Old | None:
        """Adapt `export function evaluate` and `export const evaluate = …`; return None for exports of other names."""
        if self._entry not in self._draft.names.module.bound or not self._binds(value):
            return None
        self._draft.edits.replace(statement.start_byte, value.start_byte)
        self._look(value)
        return _Old(self._rename(self._entry, self._free()), "", "export ")

    def _from_specifier(self, statement: Node, specifier: Node, specifiers: list[Node]) -> _Old:
        """Adapt `export { score as evaluate }`, which may also re-export from another module."""
        draft, name = self._draft, self._free()
        source = child(statement, "source")
        local = text(child(specifier, "name") or specifier)
        rest = [text(one) for one in specifiers if one != specifier]
        origin = f" from {text(source)}" if source is not None else ""
        kept = f"export {{ {', '.join(rest)} }}{origin}{semicolon(draft)}" if rest else ""
        if source is not None:
            kept = f"import {{ {local} as {name} }}{origin}{semicolon(draft)}\n{kept}".rstrip()
        draft.edits.replace(statement.start_byte, statement.end_byte, kept)
        if source is None:
            name = self._rename(local, name) if local == self._entry else local
        return _Old(name, "", "export ")

    def _declared(self, name: str) -> _Old | None:
        """Rename a function that a script declares, in any form; return None if there is none with this name."""
        if name not in self._draft.names.module.bound:
            return None
        writes = [one for one in self._draft.names.of(name, self._draft.names.module) if one.access is NameAccess.WRITE]
        for use in writes:
            around = use.node.parent
            if around is not None:
                self._look(around if around.type in FUNCTIONS else child(around, "value") or around)
        return _Old(self._rename(name, self._free(name)))

    def _binds(self, declaration: Node) -> bool:
        """Return whether a declaration declares the entry's name."""
        names = [child(declaration, "name")] if declaration.type in (*_DECLARED, "function_signature") else []
        if not names:
            names = [child(one, "name") for one in declaration.named_children if one.type == "variable_declarator"]
        return any(one is not None and re.search(rf"\b{re.escape(self._entry)}\b", text(one)) for one in names)

    def _look(self, value: Node) -> None:
        """Record whether the old function is async, if the code shows that."""
        if value.type in FUNCTIONS:
            self._is_async = any(one.type == "async" for one in value.children)

    def _rename(self, old: str, new: str) -> str:
        names, draft = self._draft.names, self._draft
        for use in names.of(old, names.module):
            around = use.node.parent
            if around is not None and around.type == "import_specifier" and child(around, "alias") is None:
                draft.edits.replace_node(use.node, f"{old} as {new}")
            elif around is None or around.type != "export_specifier":
                replace_use(draft, use, new)
        for one in draft.root.named_children:
            signature = child(one, "declaration") if one.type == "export_statement" else one
            name = (
                child(signature, "name") if signature is not None and signature.type == "function_signature" else None
            )
            if name is not None and text(name) == old:
                draft.edits.replace_node(name, new)
                if signature != one:
                    draft.edits.replace(one.start_byte, name.parent.start_byte if name.parent else one.start_byte)
        return new

    def _free(self, entry: str | None = None) -> str:
        entry = entry or self._entry
        name = f"legacy{entry[:1].upper()}{entry[1:]}"
        words = set(re.findall(r"[\w$]+", self._draft.source.decode()))
        while name in words:
            name = f"_{name}"
        return name

    def _finish(self, old: _Old) -> Rewritten:
        draft, end = self._draft, semicolon(self._draft)
        draft.origin = "main" if self._is_main else "evaluate-v1"
        draft.parameters = self._parameters()
        keyword = "async " if self._is_async else ""
        types = (f": {_TYPES}", ": any", ": any", ": any[]", ": any") if self._typed else ("",) * 5
        last = f", ...fourth{types[3]}" if self._takes_four else ""
        parameters = f"(inputs{types[0]}, outputs{types[1]}, trace{types[2]}{last})"
        wait = "await " if self._is_async else ""
        lines = []
        if self._is_main:
            said = f"const said{types[4]} = {{ completion: outputs, output: outputs, outputs }}{end}"
            variables = "outputs == null ? { ...said, ...inputs } : { ...inputs, ...said }"
            lines += [said, f"const result{types[4]} = {wait}{old.callee}({variables}){end}"]
            lines += [f"return typeof result === 'string' ? JSON.parse(result) : result{end}"]
        else:
            given = f"{{}}, inputs, outputs, {member(draft, 'inputs', draft.wish.key)}"
            score = "result" if old.callee.partition(".")[0] == "score" else "score"
            if self._takes_four:
                lines.append(f"if (fourth.length) return {old.callee}(inputs, outputs, trace, ...fourth){end}")
            lines += [f"const {score}{types[4]} = {wait}{old.callee}({given}){end}"]
            lines += [f"return typeof {score} === 'string' ? Number({score}.trim() || NaN) : {score}{end}"]
        body = "".join(f"  {line}\n" for line in lines)
        before = f"{old.before}\n\n" if old.before else ""
        gap = "" if draft.source.endswith(b"\n") else "\n"
        function = f"{old.opening}{keyword}function {self._new}{parameters} {{\n{body}}}{old.closing}\n"
        draft.edits.insert(len(draft.source), f"{gap}\n{before}{function}")
        return draft.finish()

    def _parameters(self) -> tuple[str, ...]:
        """Return the four legacy parameters' names: those of the first function with four parameters, or a guess."""
        if self._is_main:
            found = re.findall(r"\b(?:target|expected|reference|correct_answer)\b", self._draft.source.decode())
            self._draft.columns = tuple(dict.fromkeys(found))
            return ("", "", "completion", next(iter(found), self._draft.wish.key))
        for node in descendants(self._draft.root):
            listing = child(node, "parameters") if node.type in FUNCTIONS else None
            names = [parameter_of(one).name for one in code_children(listing)] if listing is not None else []
            if len(names) >= LEGACY and all(re.fullmatch(r"[\w$]+", name) for name in names[-LEGACY:]):
                return tuple(names[:LEGACY] if len(names) == LEGACY else names[-LEGACY:])
        return guessed_parameters(self._draft.source.decode())


_OBJECTS: Final = ("object", "new_expression")
_HOMES: Final = ("exports", "module.exports", "globalThis")
