"""Finds an evaluator inside other code: in a function that returns it, in a string, or below a notebook's magics.

It searches only code without an entry at module level, so that other evaluators lose no time.
"""

from __future__ import annotations

from evaluator_runner import dialects
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure
from evaluator_runner.outline import Outline, definitions_in, returned_by_way_of, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OWN = ("evaluate", "main")
_STARTS = [text for one in _OWN for text in (f"def {one}(", f"async def {one}(", f"{one} =", f"{one}:")]
_MOST_TEXTS = 20
_WORDS = ("def ", "class ")


class Held:
    """An evaluator inside other code.

    Attributes:
      code: The code to run, with every line at its original line number.
      recognised: Its dialect, if the dialect is known before the code runs.
      factories: Functions of the code that return the evaluator, in the order in which they are called.
      note: Remark for the author on where the evaluator was found.
    """

    __slots__ = ("code", "factories", "note", "recognised")

    def __init__(self, code: str, recognised: Any, factories: list[str], note: str) -> None:
        self.code = code
        self.recognised = recognised
        self.factories = factories
        self.note = note

    def open(self, namespace: dict[str, Any]) -> None:
        """Call the factories, and bind the functions and classes that they return to their names at module level."""
        for factory in self.factories:
            returned = _returned(namespace[factory]())
            names = [name for name, _ in returned]
            if twice := next((name for name in names if names.count(name) > 1), None):
                message = f"`{factory}()` returns several evaluators with the same name, `{twice}`"
                way = f"def first(outputs, expected): return {factory}()[0](outputs, expected)"
                raise Failure("entry_ambiguous", message, hint=f"write a function for each, such as `{way}`")
            for name, one in returned:
                namespace.setdefault(name, one)


def find_held(code: str, name: str | None, contract: str) -> Held | None:
    """Return the only evaluator inside other code.

    Return None if there is no or more than one such evaluator, or if the code has its own entry.

    Args:
      code: The pasted code.
      name: The entry that the caller requested, or None.
      contract: The declared contract, or `auto`.
    """
    lines = f"\n{code}"
    has_texts = "'''" in code or '"""' in code
    if name is None and not has_texts and any(f"\n{start}" in lines for start in _STARTS):
        return None
    outline = Outline(code)
    if not outline.parsed or name in outline.binds or outline.binds & {*_OWN}:
        return None
    if contract != "auto" and dialects.dialect_of(contract).sign(outline, name) is not None:
        return None
    if any(outline.classes.values()):
        return None
    held = _from_factories(code, outline, name, contract)
    if held is None and not any(one.required for one in outline.functions.values()):
        held = _from_texts(outline, name, contract)
    return held


def without_magics(code: str) -> str | None:
    """Return a notebook's cell with its magics (`%pip`, `!ls`) as comments, or None if the cell has no magics."""
    lines = code.split("\n")
    kept = [f"#{line[1:]}" if line[:1] in {"%", "!"} else line for line in lines]
    return "\n".join(kept) if kept != lines else None


def _from_factories(code: str, outline: Outline, name: str | None, contract: str) -> Held | None:
    inner = definitions_in(outline)
    holders = list(inner)
    if not inner:
        makers = definitions_in(outline, with_required=True)
        ways = returned_by_way_of(outline, {*makers})
        inner = {factory: [name for one in used for name in makers[one]] for factory, used in ways.items()}
        holders = [one for one in makers if any(one in used for used in ways.values())]
    if not inner:
        return None
    opened = Outline(code, inside=holders)
    recognised = _recognised(opened, code, name, contract)
    if recognised is None and not (opened.has_own_entry or (name is not None and name in opened.functions)):
        return None
    wanted = [one for one, names in inner.items() if name is None or name in names]
    if not wanted:
        return None
    shown = ", ".join(f"`{one}()`" for one in wanted[:5])
    return Held(code, recognised, wanted, f"the evaluator is what {shown} returns")


def _from_texts(outline: Outline, name: str | None, contract: str) -> Held | None:
    """Return the evaluator in the only string constant that contains one, or None if none or several contain one."""
    found = []
    for line, text in texts_in(outline)[:_MOST_TEXTS]:
        if not any(word in text for word in _WORDS):
            continue
        inner = _dedented(text)
        held = Outline(inner)
        recognised = _recognised(held, inner, name, contract) if held.parsed else None
        if recognised is not None or held.has_own_entry:
            note = f"the evaluator is the text in line {line}; the code around it is not run"
            found.append(Held("\n" * (line - 1) + inner, recognised, [], note))
    return found[0] if len(found) == 1 else None


def _recognised(outline: Outline, code: str, name: str | None, contract: str) -> Any:
    if contract == "auto":
        return dialects.recognise_outline(outline, code, name)
    declared = dialects.recognise(code, contract=contract, name=name)
    has_entry = bool(outline.functions or outline.classes)
    return declared if has_entry else None


def _returned(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(str(name), one) for name, one in value.items() if callable(one)]
    several = [one for one in (value if isinstance(value, (list, tuple)) else [value]) if callable(one)]
    names = [str(getattr(one, "__name__", None) or getattr(one, "name", None) or "evaluate") for one in several]
    return list(zip(names, several, strict=True))


def _dedented(text: str) -> str:
    lines = text.split("\n")
    margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    margin = min(margins, default=0)
    return "\n".join([line[margin:] for line in lines])
