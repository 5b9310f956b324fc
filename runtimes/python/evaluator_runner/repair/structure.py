"""Searches the block structures that statements without indentation can have.

A structure gives each statement a depth. A structure has to parse, and to follow these rules:

- A line that ends in a colon opens a block. A block ends after `return`, `raise`, `continue` and `break`, and nothing
  follows if every branch has ended, so there is no unreachable code.
- `elif`, `else`, `except`, `finally` and `case` continue a statement that is open. A loop with `else` has a `break`.
- A `def` or `class` is at the top level, unless it has to be the body of the line before. A `def` with `self` or `cls`
  is a method. A function inside another function is used there later.
- A function that returns a value also returns or raises at its end. A loop does not always end in its first iteration.
- A name that the code binds is bound where it is used; in a function, it is bound before its use on every path.
- A string alone is at the start of a block. `if __name__ == …` is at the top level.

The search goes statement by statement, and drops a structure as soon as it breaks a rule.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from evaluator_runner.repair.statements import CLAUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from evaluator_runner.repair.statements import Statement

    Names: TypeAlias = frozenset[str]
    Live: TypeAlias = frozenset[str] | None  # names that are bound at a point; None if the point cannot be reached
    Path: TypeAlias = tuple[int, "Path"] | None

# maximum number of statements that a search places (fewer in long code); it takes up to 1 s of processor time
_STEPS = 20_000
_STEPS_BY_LENGTH = 2_000_000
_DEEPEST = 20  # maximum number of nested blocks; for some kinds of blocks, CPython does not allow more
_NOTHING: frozenset[Any] = frozenset()
_SCOPES = ("module", "class", "def")
_CONTINUES = {
    "elif": ("if", "elif"),
    "else": ("if", "elif", "loop", "except"),
    "except": ("try", "except"),
    "finally": ("try", "except", "try else"),
}


class _Broken(Exception):
    """A structure breaks a rule."""


class _Frame(NamedTuple):
    """An open block.

    Attributes:
      kind: `module`, or the kind of its statement, or `loop else` or `try else`.
      unit: The statement that opened the block; None for the block of the module.
      live: Names that are bound at its end so far.
      entry: Names that are bound where it begins.
      outs: Names that are bound at the ends of the branches before this block; for a `match`, at the ends of its cases.
      tail: For an `except`, the names that are bound at the end of the `try` block.
      breaks: Names that are bound at its `break`s.
      empty: Whether the block has no statement yet.
      full: Whether its body is on its first line, so that nothing can follow.
      endless: Whether it is a `while True`, a `with` that may swallow exceptions, or a `match` or `case` that matches
        everything.
      broken, continued: Whether it has a `break` or `continue`.
      stores: Names that it binds.
      loads: Names that it uses.
      pending: Names that it uses before they are bound, each with whether a function uses it later.
      wanted: Functions that the block defines and does not use so far.
      returns: Whether it returns a value.
      yields: Whether it yields.
    """

    kind: str
    unit: Statement | None
    live: Live
    entry: Live
    outs: Live = None
    tail: Live = None
    breaks: Live = None
    empty: bool = True
    full: bool = False
    endless: bool = False
    broken: bool = False
    continued: bool = False
    stores: Names = _NOTHING
    loads: Names = _NOTHING
    pending: frozenset[tuple[str, bool]] = _NOTHING
    wanted: Names = _NOTHING
    returns: bool = False
    yields: bool = False


_Frames: TypeAlias = "tuple[_Frame, ...]"


class Structures:
    """The possible structures of some statements. The search stops when it has found two structures.

    Args:
      units: The statements.
      strict: Whether all rules apply. Otherwise only Python's own rules apply, and the rule that all code can be
        reached.

    Attributes:
      found: The structures, each as the depths of its statements.
      complete: Whether `found` has all possible structures.
    """

    def __init__(self, units: list[Statement], *, strict: bool = True) -> None:
        self._units = units
        self._strict = strict
        self._bound: Names = _NOTHING.union(*(unit.stores | unit.parameters for unit in units))
        self.found: list[list[int]] = []
        self.complete = self._search()

    def _search(self) -> bool:
        """Find up to two structures; return whether these are all."""
        open_: list[tuple[int, _Frames, Path]] = [(0, (_Frame("module", None, _NOTHING, _NOTHING),), None)]
        failed = set()
        count = max(1, len(self._units))
        for _ in range(max(4 * count, min(_STEPS, _STEPS_BY_LENGTH // count))):
            if not open_:
                return True
            at, frames, path = open_.pop()
            if at == len(self._units):
                if self._is_whole(frames):
                    self.found.append(_depths(path))
                    if len(self.found) == 2:
                        return False
                continue
            if not self.found:
                if (at, frames) in failed:
                    continue
                failed.add((at, frames))
            open_.extend((at + 1, after, (depth, path)) for depth, after in self._ways(self._units[at], frames))
        return False

    def _is_whole(self, frames: _Frames) -> bool:
        try:
            module = self._closed(frames, 0)[0]
        except _Broken:
            return False
        return not self._strict or all(name in module.stores for name, _ in module.pending)

    def _ways(self, unit: Statement, frames: _Frames) -> Iterator[tuple[int, _Frames]]:
        """Yield each depth that a statement can have, and the blocks that are then open."""
        last = len(frames) - 1
        forced = frames[-1].empty and last > 0
        ways: list[tuple[int, Callable[..., _Frames], int]]
        if unit.kind in CLAUSES:
            ways = [] if forced else [(at - 1, self._continued, at) for at in reversed(range(1, last + 1))]
        else:
            ways = [(at, self._placed, at) for at in reversed(range(last if forced else 0, last + 1))]
        for depth, place, at in ways:
            try:
                after = place(unit, frames, at, forced=forced)
            except _Broken:
                continue
            yield depth, after

    def _placed(self, unit: Statement, frames: _Frames, depth: int, *, forced: bool) -> _Frames:
        """Put a statement into the block at a depth; end deeper blocks."""
        frames = self._closed(frames, depth)
        frame = frames[-1]
        if frame.full or frame.live is None or (frame.kind == "match") != (unit.kind == "case"):
            raise _Broken
        if self._strict:
            _require_place(unit, frames, forced=forced)
        frame = self._using(unit, frame)._replace(empty=False)
        around = frames[:-1]
        if unit.kind == "simple":
            _require_scope(unit, frames)
            return (*around, _ended(unit, frame))
        if unit.kind not in ("def", "class"):
            return self._opened(unit, (*around, frame))
        frame = frame._replace(live=_bound(frame) | unit.stores, stores=frame.stores | unit.stores)
        if unit.opens and _scope(frames).kind == "def" and not _is_registered(unit):
            frame = frame._replace(wanted=frame.wanted | unit.stores, loads=frame.loads - unit.stores)
        inside = _Frame(unit.kind, unit, unit.parameters, unit.parameters)
        if len(frames) >= _DEEPEST:
            raise _Broken
        return (*around, frame, inside) if unit.opens else (*around, frame)

    def _using(self, unit: Statement, frame: _Frame) -> _Frame:
        """Add the names that a statement uses to the block around it, and return the block."""
        loads = unit.loads & self._bound
        pending = frozenset((name, False) for name in loads - _bound(frame))
        return frame._replace(loads=frame.loads | loads, pending=frame.pending | pending)

    def _opened(self, unit: Statement, frames: _Frames) -> _Frames:
        if len(frames) >= _DEEPEST:
            raise _Broken
        entry = _bound(frames[-1]) | unit.stores
        before = entry if isinstance(unit.node, ast.While) else _bound(frames[-1])
        inside = _Frame(
            unit.kind,
            unit,
            live=entry,
            entry=before if unit.kind in ("loop", "with") else entry,
            endless=unit.endless,
            stores=unit.stores,
        )
        return (*frames, inside if unit.opens else _filled(unit, inside, frames))

    def _continued(self, unit: Statement, frames: _Frames, at: int, *, forced: bool) -> _Frames:  # noqa: ARG002
        """Let a clause such as `else` continue the statement whose block is open at a depth."""
        if frames[at].kind not in _CONTINUES[unit.kind]:
            raise _Broken
        frames = self._closed(frames, at)
        before, around = frames[-1], frames[:-1]
        frame = self._branch(unit, before)._replace(empty=True, full=False)
        if frame.live is None:
            raise _Broken
        frame = self._using(unit, frame)
        frame = frame._replace(live=_bound(frame) | unit.stores, stores=frame.stores | unit.stores)
        if unit.kind == "elif":
            frame = frame._replace(entry=frame.live)
        return (*around, frame if unit.opens else _filled(unit, frame, around))

    def _branch(self, unit: Statement, before: _Frame) -> _Frame:
        """Return the block for a clause such as `else`; `before` is the block of the branch before the clause."""
        outs = _join(before.outs, before.live)
        if before.kind in ("if", "elif"):
            return before._replace(kind=unit.kind, live=before.entry, outs=outs)
        if before.kind == "loop":
            if self._strict and not before.broken:
                raise _Broken
            return before._replace(
                kind="loop else", live=before.entry, outs=before.breaks, breaks=None, broken=False, continued=False
            )
        if unit.kind == "except" and before.kind == "try":
            return before._replace(kind="except", live=before.entry, tail=before.live)
        if unit.kind == "except":
            return before._replace(live=before.entry, outs=outs)
        if unit.kind == "else":
            return before._replace(kind="try else", live=before.tail, outs=outs)
        tail = before.tail if before.kind == "except" else None
        return before._replace(kind="finally", live=before.entry, outs=_join(outs, tail))

    def _closed(self, frames: _Frames, depth: int) -> _Frames:
        """Return the blocks that are still open once all blocks below a depth have ended."""
        while len(frames) - 1 > depth:
            top, around = frames[-1], frames[-2]
            frames = (*frames[:-2], self._around(top, around))
        return frames

    def _around(self, top: _Frame, around: _Frame) -> _Frame:
        match top.kind:
            case "def":
                return self._after_function(top, around)
            case "class":
                pending = frozenset(one for one in top.pending if one[1] or one[0] not in top.stores)
                return around._replace(pending=around.pending | pending, loads=around.loads | top.loads)
            case "case":
                after = _with_facts(top, around, around.entry)
                return after._replace(outs=_join(around.outs, top.live), endless=around.endless or top.endless)
            case "loop" if self._strict and top.live is None and not top.continued and not top.full:
                raise _Broken  # the loop would always end in its first iteration
        return _with_facts(top, around, _out(top))

    def _after_function(self, top: _Frame, around: _Frame) -> _Frame:
        assert top.unit is not None  # noqa: S101 - a statement opened this block
        pending = set()
        for name, deferred in top.pending:
            if name not in top.stores and name not in top.unit.parameters:
                pending.add((name, True))
            elif not deferred and self._strict:
                raise _Broken  # a name is not bound on every path to its use
        falls_through = top.returns and not top.yields and top.live is not None
        if self._strict and (falls_through or top.wanted - top.loads):
            raise _Broken
        loads = around.loads | (top.loads - top.unit.stores)
        return around._replace(pending=around.pending | pending, loads=loads)


def _depths(path: Path) -> list[int]:
    depths: list[int] = []
    while path is not None:
        depth, path = path
        depths.append(depth)
    return depths[::-1]


def _join(one: Live, other: Live) -> Live:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _bound(frame: _Frame) -> Names:
    return frame.live or _NOTHING


def _scope(frames: _Frames) -> _Frame:
    return next(frame for frame in reversed(frames) if frame.kind in _SCOPES)


def _out(top: _Frame) -> Live:
    """Return the names that are bound after a compound statement that ends with its last block."""
    branches = _join(top.outs, top.live)
    match top.kind:
        case "try":
            raise _Broken
        case "if" | "elif":
            return _join(branches, top.entry)
        case "loop":
            out = top.breaks if top.endless else _join(top.entry, top.breaks)
            target = top.unit.stores if top.unit is not None and isinstance(top.unit.node, ast.For) else _NOTHING
            return None if out is None else out | target
        case "except":
            return _join(branches, top.tail)
        case "finally":
            return None if top.outs is None or top.live is None else top.outs | top.live
        case "with":
            return top.entry if top.live is None and top.endless else top.live
        case "match":
            return top.outs if top.endless else _join(top.outs, top.entry)
        case _:
            return branches


def _with_facts(top: _Frame, around: _Frame, live: Live) -> _Frame:
    """Add facts about the block `top`, which ends, and the names that are bound after it, to the block `around`."""
    is_loop = top.kind == "loop"
    return around._replace(
        live=live,
        stores=around.stores | top.stores,
        loads=around.loads | top.loads,
        pending=around.pending | top.pending,
        wanted=around.wanted | top.wanted,
        returns=around.returns or top.returns,
        yields=around.yields or top.yields,
        breaks=around.breaks if is_loop else _join(around.breaks, top.breaks),
        broken=around.broken or (top.broken and not is_loop),
        continued=around.continued or (top.continued and not is_loop),
    )


def _ended(unit: Statement, frame: _Frame) -> _Frame:
    """Return `frame` as it is after a simple statement in it, or after a body on the header's own line (`if x: y`)."""
    live = _bound(frame) | unit.stores
    return frame._replace(
        live=None if unit.end else live,
        stores=frame.stores | unit.stores,
        returns=frame.returns or unit.returns_value,
        yields=frame.yields or unit.yields,
        breaks=_join(frame.breaks, live) if unit.end == "break" else frame.breaks,
        broken=frame.broken or unit.end == "break",
        continued=frame.continued or unit.end == "continue",
    )


def _filled(unit: Statement, inside: _Frame, around: _Frames) -> _Frame:
    """Return a block whose body is on the line that opens the block."""
    _require_scope(unit, (*around, inside))
    return _ended(unit, inside)._replace(full=True, empty=False)


def _require_scope(unit: Statement, frames: _Frames) -> None:
    """Check that the language allows a statement's `return`, `yield`, `await`, `break` or `continue` in its place."""
    scope = _scope(frames)
    if (unit.returns or unit.yields or unit.awaits) and scope.kind != "def":
        raise _Broken
    if unit.awaits and not (scope.unit is not None and isinstance(scope.unit.node, ast.AsyncFunctionDef)):
        raise _Broken
    if unit.end in ("break", "continue"):
        inner = next(frame for frame in reversed(frames) if frame.kind in (*_SCOPES, "loop"))
        if inner.kind != "loop":
            raise _Broken


def _require_place(unit: Statement, frames: _Frames, *, forced: bool) -> None:
    """Check the rules for definitions, for strings that stand alone, and for `if __name__ == …`.

    `forced` means that only this statement can be the body of the line before; definitions are then allowed.
    """
    frame = frames[-1]
    if unit.is_method:
        allowed = frame.kind == "class" or forced
    elif unit.kind == "class" and unit.stores <= {"Config", "Meta"}:
        allowed = forced or frame.kind in _SCOPES  # pydantic and Django use such classes inside other classes
    elif unit.kind in ("def", "class"):
        allowed = forced or frame.kind == "module" or _scope(frames).kind == "def"
    elif unit.is_docstring:
        allowed = forced or (frame.kind == "module" and frame.empty)
    else:
        allowed = frame.kind == "module" or "__name__" not in unit.loads or unit.kind != "if"
    if not allowed:
        raise _Broken


def _is_registered(unit: Statement) -> bool:
    """Return whether decorators may use a function; if so, no other code has to use it."""
    names = [ast.unparse(one) for one in getattr(unit.node, "decorator_list", ())]
    return bool(names) and not any("wraps" in name for name in names)
