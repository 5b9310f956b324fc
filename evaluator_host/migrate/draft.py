"""A rewrite in progress: its edits, the list of its changes, and its remarks for the user."""

import re
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.edits import Edits
from evaluator_host.migrate.grammar import Grammar
from evaluator_host.migrate.scopes import NameUses
from evaluator_host.migrate.syntax import Unreadable
from evaluator_host.types.migrations import Remark

WIDTH: Final = 88  # maximum length of a line, as in the formatter black; longer statements are split


@dataclass(frozen=True, slots=True)
class Wish:
    """The options of a rewrite: the function, and its new contract.

    Attributes:
      entry: Name of the function.
      key: Name of the input with the ground truth.
      to: The contract of the new code, `evaluate` or `main`.
      whole_row: Whether a fourth parameter with a name such as `datapoint` may mean the whole row.
    """

    entry: str = "evaluate"
    key: str = "correct_answer"
    to: str = "evaluate"
    whole_row: bool = True


@dataclass(frozen=True, slots=True)
class NewNames:
    """The parameter names of the rewritten function."""

    inputs: str
    outputs: str
    trace: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The result of a rewrite.

    Attributes:
      code: The new code; None if nothing changed.
      current: Whether the code already has the new signature.
      whole_row: Whether the old code expects the whole row of test data as its fourth argument.
      parameters: The old parameter names, in the legacy order. Generated rows contain values for these parameters.
      columns: Names of further inputs that the old function takes as parameters.
      source: The contract of the old code.
    """

    code: str | None
    changes: tuple[Remark, ...] = ()
    unresolved: tuple[Remark, ...] = ()
    current: bool = False
    whole_row: bool = False
    parameters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    source: str = "evaluate-v1"


@dataclass(slots=True)
class Draft:
    """Collects the edits to one program, and remarks on them."""

    source: bytes
    root: Node
    names: NameUses
    wish: Wish
    grammar: Grammar
    edits: Edits = field(init=False)
    changes: list[Remark] = field(default_factory=list)
    unresolved: list[Remark] = field(default_factory=list)
    whole_row: bool = False
    parameters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    origin: str = "evaluate-v1"
    dropped: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.edits = Edits(self.source)

    def did(self, node: Node | None, message: str) -> None:
        """Add a line to the list of changes that were made."""
        self._note(self.changes, node, message)

    def left(self, node: Node | None, message: str) -> None:
        """Add a remark on code that the user should check or change by hand."""
        self._note(self.unresolved, node, message)

    def drop(self, start: int, end: int) -> None:
        """Mark a byte range as deleted or moved. Later steps ignore the syntax nodes in this range."""
        self.dropped.append((start, end))

    def is_gone(self, node: Node) -> bool:
        """Return whether a syntax node is in a deleted or moved range."""
        return any(start <= node.start_byte and node.end_byte <= end for start, end in self.dropped)

    def drop_comment_behind(self, node: Node) -> None:
        """Delete the comment after a removed parameter, if the comment is on the same line."""
        after = node.next_sibling
        while after is not None and after.start_point[0] == node.end_point[0]:
            if after.type == "comment":
                start = after.start_byte
                while self.source[start - 1 : start] in (b" ", b"\t"):
                    start -= 1
                self.edits.replace(start, after.end_byte)
                return
            after = after.next_sibling

    def line_width(self, node: Node) -> int:
        """Return the number of characters in the line on which a syntax node starts, including the edits so far."""
        start = self.source.rfind(b"\n", 0, node.start_byte) + 1
        end = self.source.find(b"\n", node.start_byte)
        end = end if end >= 0 else len(self.source)
        return len(self.source[start:end].decode()) + self.edits.growth(start, end)

    def finish(self) -> Rewritten:
        """Apply the edits and return the new code."""
        return Rewritten(
            self.edits.apply(),
            _sorted(self.changes),
            _sorted(self.unresolved),
            whole_row=self.whole_row,
            parameters=self.parameters,
            columns=self.columns,
            source=self.origin,
        )

    @staticmethod
    def _note(notes: list[Remark], node: Node | None, message: str) -> None:
        remark = Remark(None if node is None else node.start_point[0] + 1, message)
        if remark not in notes:
            notes.append(remark)


def guessed_parameters(code: str) -> tuple[str, ...]:
    """Guess the names of the four legacy arguments in a program that does not declare them as parameters."""
    words = set(re.findall(r"\w+", code))
    return tuple(next((name for name in names if name in words), names[0]) for names in _USUAL)


_USUAL: Final = (
    ("app_params", "appParams", "params"),
    ("inputs", "data", "row"),
    ("output", "outputs", "completion", "response", "prediction", "said"),
    ("correct_answer", "correctAnswer", "expected", "target", "reference", "truth", "gold", "answer", "wanted"),
)


def whole_row_remark(name: str, inputs: str, key: str) -> str:
    """Return the remark for code that expects the whole row as its fourth argument."""
    return (
        f"the code treats {name} as the whole row ({inputs}), as early versions of Agenta passed it, so the migrated "
        f"code reads {inputs}. The legacy contract passes only inputs[{key!r}]; to read that, prove the migration on "
        f"rows in which inputs[{key!r}] is an object"
    )


def refuse(node: Node | None, reason: str) -> Unreadable:
    """Return the exception that stops the rewrite and leaves the program unchanged."""
    return Unreadable(reason, None if node is None else node.start_point[0] + 1)


def _sorted(notes: list[Remark]) -> tuple[Remark, ...]:
    return tuple(sorted(notes, key=lambda one: (one.line or 0, one.message)))
