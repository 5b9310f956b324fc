"""Edits a text by byte positions. All bytes outside the edits stay unchanged."""

from dataclasses import dataclass

from tree_sitter import Node

Part = str | tuple[int, int]
"""New text, or a range of the old text with the edits inside it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: bytes `start` to `end` of the old text are replaced by `parts`."""

    start: int
    end: int
    parts: tuple[Part, ...]


class Edits:
    """All edits of one text. An edit inside another edit applies only if the outer edit keeps that range."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._edits: list[Edit] = []

    def replace(self, start: int, end: int, *parts: Part) -> None:
        """Replace bytes `start` to `end` of the old text with `parts`: new texts, and old ranges to keep."""
        self._edits.append(Edit(start, end, parts))

    def replace_node(self, node: Node, *parts: Part) -> None:
        """Replace the text of a syntax node with `parts`: new texts, and old ranges to keep."""
        self.replace(node.start_byte, node.end_byte, *parts)

    def wrap(self, node: Node, *parts: Part) -> None:
        """Put text around a syntax node. `parts` has new texts, and the node's range, in which edits still apply."""
        self._edits.insert(0, Edit(node.start_byte, node.end_byte, parts))

    def insert(self, at: int, text: str) -> None:
        """Insert text before byte `at` of the old text."""
        self.replace(at, at, text)

    def growth(self, start: int, end: int) -> int:
        """Estimate how many characters the edits inside a range add. Edits inside other edits count twice."""
        inside = [edit for edit in self._edits if start <= edit.start and edit.end <= end]
        return sum(_length(edit.parts) - (edit.end - edit.start) for edit in inside)

    def apply(self) -> str:
        """Return the text with all edits applied."""
        return self._render(0, len(self.source), sorted(self._edits, key=lambda one: (one.start, -one.end)))

    def _render(self, low: int, high: int, edits: list[Edit]) -> str:
        out: list[str] = []
        at = low
        for index, edit in enumerate(edits):
            if edit.start < at or edit.end > high:
                continue
            out.append(self.source[at : edit.start].decode())
            inner = edits[index + 1 :]
            out += [part if isinstance(part, str) else self._render(*part, _inside(part, inner)) for part in edit.parts]
            at = edit.end
        out.append(self.source[at:high].decode())
        return "".join(out)


def _length(parts: tuple[Part, ...]) -> int:
    return sum(len(part) if isinstance(part, str) else part[1] - part[0] for part in parts)


def _inside(part: tuple[int, int], edits: list[Edit]) -> list[Edit]:
    return [edit for edit in edits if part[0] <= edit.start and edit.end <= part[1]]


def span(node: Node) -> tuple[int, int]:
    """Return the byte range of a syntax node."""
    return node.start_byte, node.end_byte
