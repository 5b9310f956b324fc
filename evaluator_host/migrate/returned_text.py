"""Makes evaluators convert text to a number before they return it as the score, as the legacy contract did for them."""

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft
from evaluator_host.migrate.edits import span
from evaluator_host.migrate.function import Legacy
from evaluator_host.migrate.grammar import Grammar
from evaluator_host.migrate.kinds import DEPTH, TextKind, combined
from evaluator_host.migrate.scopes import Scope
from evaluator_host.migrate.syntax import child, code_children, returned_values, text


def convert_returned_text(draft: Draft, legacy: Legacy) -> None:
    """Add conversions to a number where the function returns text as the score."""
    grammar = draft.grammar
    if any(draft.names.lookup(name, legacy.scope) is not None for name in grammar.used):
        return
    kinds = _Kinds(draft)
    done = [_convert(draft, legacy, kinds, value) for value in _returned(grammar, legacy.node)]
    declared = child(legacy.node, "return_type")
    new = grammar.number_types.get(text(declared).lstrip(": ")) if declared is not None else None
    if any(done) and declared is not None and new is not None:
        draft.edits.replace_node(declared, f": {new}")


def _convert(draft: Draft, legacy: Legacy, kinds: "_Kinds", value: Node) -> bool:
    grammar = draft.grammar
    kind = kinds.of(value, legacy.scope)
    passed_on = value.type == "identifier" and text(value) in {one.name for one in legacy.parameters[2:]}
    if kind in (TextKind.TEXT, TextKind.EITHER):
        before, after = grammar.to_number
        draft.edits.wrap(value, before, span(value), after)
    elif value.type in grammar.descends:
        return _convert(draft, legacy, kinds, value.named_children[0])
    elif value.type == grammar.conditional[0]:
        done = [_convert(draft, legacy, kinds, branch) for branch in _branches(grammar, value)]
        return any(done)
    elif value.type == "identifier" and (kind is TextKind.PERHAPS or passed_on):
        draft.edits.wrap(value, *grammar.number_if_text(span(value)))
    else:
        return False
    draft.did(value, "text is now converted to a number; the legacy contract did that itself")
    return True


def _branches(grammar: Grammar, conditional: Node) -> list[Node]:
    parts = code_children(conditional)
    return [parts[at] for at in grammar.conditional[1:]]


def _returned(grammar: Grammar, function: Node) -> Iterator[Node]:
    body = child(function, "body")
    if body is None:
        return
    if body.type != grammar.block:
        yield body
        return
    yield from returned_values(body, (*grammar.functions, *grammar.classes))


class _Kinds:
    """Finds out whether expressions evaluate to text, by following the program's variables and functions."""

    def __init__(self, draft: Draft) -> None:
        self._names = draft.names
        self._grammar = draft.grammar

    def of(self, node: Node, scope: Scope, depth: int = DEPTH) -> TextKind:
        grammar = self._grammar
        if depth == 0:
            return TextKind.UNKNOWN
        if node.type in grammar.wrappers:
            return self.of(node.named_children[0], scope, depth)
        if node.type in grammar.texts:
            return TextKind.TEXT if grammar.is_text(text(node)) else TextKind.UNKNOWN
        if node.type in grammar.numbers:
            return TextKind.NUMBER
        if node.type == grammar.conditional[0]:
            return combined([self.of(one, scope, depth) for one in _branches(grammar, node)])
        if node.type == grammar.call:
            return self._call(node, scope, depth)
        if node.type == "identifier":
            return self._variable(text(node), scope, depth)
        if node.type in grammar.entries:
            return self._entry(node, scope)
        return self._operation(node, scope, depth)

    def _operation(self, node: Node, scope: Scope, depth: int) -> TextKind:
        left, right = child(node, "left"), child(node, "right")
        if node.type != self._grammar.binary or left is None or right is None:
            return TextKind.UNKNOWN
        operator = text(child(node, "operator") or node)
        return self._grammar.sum_kind(operator, self.of(left, scope, depth), self.of(right, scope, depth))

    def _call(self, node: Node, scope: Scope, depth: int) -> TextKind:
        grammar, function = self._grammar, child(node, "function")
        if function is None:
            return TextKind.UNKNOWN
        name = text(function)
        if function.type == "identifier":
            owner = self._names.lookup(name, scope)
            if owner is not None:
                return self._result(name, owner, depth)
            number = TextKind.NUMBER if name in grammar.number_makers else TextKind.UNKNOWN
            return TextKind.TEXT if name in grammar.text_makers else number
        member, field = grammar.member
        value = child(function, field)
        if function.type != member or value is None or text(function.named_children[-1]) not in grammar.text_methods:
            return TextKind.UNKNOWN
        made = not grammar.by_receiver or self.of(value, scope, depth - 1) is TextKind.TEXT
        return TextKind.TEXT if made else TextKind.UNKNOWN

    def _result(self, name: str, owner: Scope, depth: int) -> TextKind:
        """Return the kind of a function's results, if the program defines the function once and does not wrap it."""
        writes = [use.node.parent for use in self._names.writes(name, owner)]
        node = writes[0] if len(writes) == 1 else None
        if node is not None and node.type in self._grammar.declares:
            node = child(node, "value")
        if node is None or node.type not in self._grammar.functions or self._grammar.is_wrapped(node):
            return TextKind.UNKNOWN
        inner = self._names.scopes[node.id]
        return combined([self.of(one, inner, depth - 1) for one in _returned(self._grammar, node)])

    def _variable(self, name: str, scope: Scope, depth: int) -> TextKind:
        """Return the kind of a variable that is set only by plain declarations and assignments."""
        owner = self._names.lookup(name, scope)
        if owner is None:
            return TextKind.UNKNOWN
        kinds = []
        for use in self._names.writes(name, owner):
            value, kind = self._value(use.node, self._grammar.values), use.node.parent.type if use.node.parent else ""
            if value is not None or kind not in self._grammar.declares:
                kinds.append(TextKind.UNKNOWN if value is None else self.of(value, use.scope, depth - 1))
        return combined(kinds)

    def _entry(self, node: Node, scope: Scope) -> TextKind:
        """Return the kind of an entry in a literal dict or object."""
        grammar = self._grammar
        value = child(node, grammar.entries[node.type])
        owner = self._names.lookup(text(value), scope) if value is not None and value.type == "identifier" else None
        if value is None or owner is None:
            return TextKind.UNKNOWN
        uses = self._names.writes(text(value), owner)
        table = self._value(uses[0].node, grammar.tables) if len(uses) == 1 else None
        if table is None or table.type not in grammar.table_literals:
            return TextKind.UNKNOWN
        entries = [child(one, "value") if one.type in grammar.pairs else one for one in code_children(table)]
        return combined([TextKind.UNKNOWN if one is None else self.of(one, owner, 2) for one in entries])

    @staticmethod
    def _value(name: Node, fields: Mapping[str, str]) -> Node | None:
        around = name.parent
        return child(around, fields[around.type]) if around is not None and around.type in fields else None
