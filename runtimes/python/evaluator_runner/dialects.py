"""Finds the dialects (the ways to write an evaluator), and the dialect of given code.

Each dialect is a module or a package in the folder `dialects` next to this package, and has:

- `CONTRACT`: the dialect's name in the protocol.
- `WORDS`, optional, on a line next to `CONTRACT`: every evaluator of the dialect contains at least one of these words.
  Both lines are read before the module is imported.
- `PREBOUND`: whether code may use the modules of `prebound.NAMES` without importing them.
- `find(namespace, *, name, config)`: returns the `Entry`, or raises a `Failure`.
- `describe(namespace, lines)`, optional: returns the description of each evaluator class, for a check.

A dialect without `WORDS` is recognised after the code has run, by

- `applies(namespace, name)`: returns whether the code is written in this dialect; `name` is the entry that the caller
  asked for, or None.
- `is_plain(compiled)`, optional: returns whether code that has not run yet can only be of this dialect.

If the dialect has `WORDS`, it is recognised from the source before the code runs, by

- `sign(outline, name)`: looks for a sign of this dialect in the code. It returns the rank of the sign (`DECORATED` …
  `BY_NAME`) and a description for people, or None if there is no sign. The dialect with the lowest rank is chosen; two
  dialects with the same rank are an error.
- `source(code)`, optional: returns the code to run in place of the given code, with the same line numbers.
- `names()`, optional: returns what the code may use without importing it, by name.
- `MODULES`, optional: installed modules that the code may use without importing them, by the name that the code uses.
- `IMPORTS`, optional: objects of the platform's package that code may use without importing them, `module:name` each.

Dialects with `WORDS` are imported before user code runs, and only if the code contains one of their words; other
sandboxes pay nothing for them. All other dialects are imported when the runner starts. So user code cannot change any
dialect.
"""

from __future__ import annotations

import os

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.entry import does_not_fit, note_on_main
from evaluator_runner.failures import Failure
from evaluator_runner.outline import Outline
from evaluator_runner.prebound import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from evaluator_runner.entry import Entry

__path__ = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dialects")]

_OWN = ("evaluate_v1", "evaluate", "main")  # the host's own contracts, which come after all others and in this order
_HEAD_BYTES = 4096  # number of bytes at the beginning of a dialect's module that contain its constants

DECORATED, NAMED, PARAMETERS, SHAPED, ANY_NAME, BY_NAME = range(1, 7)
"""The ranks of signs: a base or a decorator from the dialect's package; the name of the function; the names of its
parameters; the shape of the whole code; parameters that several platforms use, of a function with any name; names that
say what a function does or gets, if no platform is known."""


def _found(folder: str) -> dict[str, tuple[str, ...] | None]:
    """Return the `WORDS` of each dialect in a folder, by the dialect's module, or None for a dialect without them."""
    found: dict[str, tuple[str, ...] | None] = {}
    for name in sorted(os.listdir(folder)):
        module = name.removesuffix(".py")
        try:
            with open(f"{folder}/{name}" if module != name else f"{folder}/{name}/__init__.py", "rb", 0) as file:
                head = file.read(_HEAD_BYTES).decode("utf-8", "replace")
        except OSError:  # this file or folder is not the module of a dialect
            continue
        if "\nCONTRACT = " in head:
            words = head.partition("\nWORDS = ")[1:]
            found[module] = tuple(words[1].partition("\n")[0].split('"')[1::2]) if words[0] else None
    return found


_FOUND = _found(__path__[0])
_AFTER = (*(name for name, words in _FOUND.items() if words is None and name not in _OWN), *_OWN)
_WORDS = {name: words for name, words in _FOUND.items() if words is not None}

CONTRACTS: dict[str, str] = {name.replace("_", "-"): name for name in (*_AFTER, *_WORDS)}
"""The names of the dialects' modules, by contract."""

_loaded: dict[str, Any] = {}


def dialect_of(contract: str) -> Any:
    """Return the dialect's module for a contract."""
    name = CONTRACTS[contract]
    if name not in _loaded:
        _loaded[name] = __import__(f"{__name__}.{name}", fromlist=["CONTRACT"])
    return _loaded[name]


_MODULES: list[Any] = [dialect_of(name.replace("_", "-")) for name in _AFTER]


class Recognised:
    """The dialect of an evaluator, declared or recognised before the code ran.

    Attributes:
      dialect: Module of the dialect.
      step: Rank of the sign by which the dialect was recognised, see `sign`; 0 for a declared dialect.
      reason: The sign, as text for people.
    """

    __slots__ = ("dialect", "reason", "step")

    def __init__(self, dialect: Any, step: int = 0, reason: str = "") -> None:
        self.dialect = dialect
        self.step = step
        self.reason = reason

    def source(self, code: str) -> str:
        """Return the code to run in place of the evaluator's code, with the same line numbers."""
        source = getattr(self.dialect, "source", None)
        return code if source is None else source(code)

    def names(self) -> dict[str, Any]:
        """Return the objects that the code may use without importing them, by name."""
        names = getattr(self.dialect, "names", None)
        return {} if names is None else names()

    @property
    def modules(self) -> dict[str, str]:
        """Return the modules that the code may use without importing them, by the name that the code uses."""
        own = {name: name for name in NAMES} if self.dialect.PREBOUND else {}
        return {**own, **getattr(self.dialect, "MODULES", {})}

    @property
    def imports(self) -> dict[str, str]:
        """Return the names from the platform's package that need no import, each with its `module:name`."""
        imports: dict[str, str] = getattr(self.dialect, "IMPORTS", {})
        return imports


def recognise(code: str, *, contract: str, name: str | None) -> Recognised | None:
    """Return the dialect of code that has not run, or None if the source does not show the dialect.

    Raises:
      Failure: two dialects match equally.
    """
    if contract != "auto":
        return Recognised(dialect_of(contract)) if CONTRACTS[contract] in _WORDS else None
    possible = _possible(code)
    if not possible:
        return None
    return _of_every(possible, Outline(code)) if name == "*" else _told(possible, Outline(code), name)


def _of_every(possible: list[str], outline: Outline) -> Recognised | None:
    """For a file whose evaluators all run, return the dialect with the most certain sign; None if there is no sign."""
    from evaluator_runner.candidates import public

    if outline.has_own_entry:
        return _told(possible, outline, None)
    told = {name: _told(possible, outline, name) for name in public(outline)}
    found = min((one for one in told.values() if one is not None), key=lambda one: one.step, default=None)
    by_position = [name for name, one in told.items() if one is None and _takes_three(outline, name)]
    return None if found is not None and found.step == BY_NAME and by_position else found


def _takes_three(outline: Outline, name: str) -> bool:
    function = outline.functions.get(name)
    return function is not None and function.positional >= 3


def recognise_outline(outline: Outline, code: str, name: str | None) -> Recognised | None:
    """Recognise the dialect as `recognise` does, from the code's outline.

    The words of each dialect are searched for in `code`.

    Raises:
      Failure: two dialects match equally.
    """
    return _told(_possible(code), outline, name)


def _possible(code: str) -> list[str]:
    return [one for one, words in _WORDS.items() if any(word in code for word in words)]


def _told(possible: list[str], outline: Outline, name: str | None) -> Recognised | None:
    if name is None and outline.has_evaluate:
        return None  # other classes and functions in the file are helpers of this evaluator
    dialects = [dialect_of(one.replace("_", "-")) for one in possible]
    if name is None and outline.parsed:
        outline = _without_private_helpers(outline)
    equal = _best(dialects, outline, name)
    if len(equal) > 1 and name is None:
        equal = _best(dialects, _without_helpers(outline, equal), None)
    if len(equal) > 1:
        raise _ambiguous({one.dialect.CONTRACT: one.reason for one in equal})
    return equal[0] if equal else None


def _best(dialects: list[Any], outline: Outline, name: str | None) -> list[Recognised]:
    signs = [(dialect, dialect.sign(outline, name)) for dialect in dialects]
    found = [Recognised(dialect, *sign) for dialect, sign in signs if sign is not None]
    best = min((one.step for one in found), default=0)
    return [one for one in found if one.step == best]


def _without_private_helpers(outline: Outline) -> Outline:
    if not any(one.startswith("_") for one in outline.functions):
        return outline
    from evaluator_runner.candidates import private_helpers

    return outline.without(private_helpers(outline))


def _without_helpers(outline: Outline, equal: list[Recognised]) -> Outline:
    """Return the outline without functions that look like evaluators of the dialects in `equal`, but are helpers."""
    from evaluator_runner.candidates import meant

    names = [name for name in outline.functions if any(one.dialect.sign(outline, name) for one in equal)]
    return outline.without({*names} - {*meant(outline, names)})


def find(
    namespace: dict[str, Any],
    *,
    contract: str,
    name: str | None,
    config: dict[str, Any] | None = None,
    recognised: Recognised | None = None,
) -> Entry:
    """Return the entry (the function that is called for each row) of an evaluator.

    Args:
      namespace: Globals of the code after it has run.
      contract: The declared contract, or `auto`.
      name: Name of the function or class, or None when the caller gave none.
      config: Arguments for an evaluator class.
      recognised: Dialect that was recognised before the code ran.

    Raises:
      Failure: the code has no entry, or several possible ones, or its parameters do not fit the contract.
    """
    if name == "*":
        return _find_every(namespace, contract, config, recognised)
    try:
        return _find_one(namespace, contract, name, config, recognised)
    except Failure as failure:
        is_open = name is None and contract == "auto" and recognised is None
        if not is_open or failure.code != "entry_not_found" or (found := _by_columns(namespace)) is None:
            raise
        return found


def _find_one(
    namespace: dict[str, Any],
    contract: str,
    name: str | None,
    config: dict[str, Any] | None,
    recognised: Recognised | None,
) -> Entry:
    inferred = contract == "auto"
    dialect = _meant(namespace, name, recognised) if inferred else dialect_of(contract)
    try:
        entry: Entry = dialect.find(namespace, name=name, config=config or {})
    except Failure as failure:
        if name is not None:
            raise
        only = _only_function(namespace, contract) if failure.code == "entry_not_found" else None
        if only is not None:
            return find(namespace, contract=contract, name=only, config=config, recognised=recognised)
        if not failure.equal:
            raise
        return _find_equal(namespace, contract, config, recognised, failure)
    entry.pass_by_name()
    if inferred and name is None:
        note_on_main(namespace, entry)
    entry.contract = dialect.CONTRACT
    entry.source = "inferred" if inferred else "declared"
    if not inferred:
        entry.reason = f"contract {contract} was declared"
    elif recognised is not None:
        entry.reason = recognised.reason
    return entry


def _only_function(namespace: dict[str, Any], contract: str) -> str | None:
    """Return the only public function of the code if the declared contract belongs to another platform, else None."""
    from evaluator_runner.candidates import public

    if contract == "auto" or contract.replace("-", "_") in _OWN:
        return None
    outline = Outline(namespace["__loader__"].get_source("evaluator"))
    names = [one for one in public(outline) if one in namespace]
    return names[0] if len(names) == 1 and names[0] in outline.functions and not outline.classes else None


def _find_every(
    namespace: dict[str, Any], contract: str, config: dict[str, Any] | None, recognised: Recognised | None
) -> Entry:
    from evaluator_runner.candidates import public
    from evaluator_runner.every import find_every

    code = namespace["__loader__"].get_source("evaluator")
    outline = Outline(code)
    names = [one for one in public(outline) if one in namespace]
    dialect = None if recognised is None else recognised.dialect
    if dialect is None and contract != "auto":
        dialect = dialect_of(contract)
    if dialect is not None and hasattr(dialect, "sign"):
        names = [one for one in names if dialect.sign(outline, one) is not None] or names

    def one(name: str) -> Entry:
        found = find(namespace, contract=contract, name=name, config=config, recognised=recognised)
        if contract == "auto" and found.contract == "main" and name != "main":
            raise does_not_fit(namespace, name)
        return found

    return find_every(names, one, code.split("\n"))


def _find_equal(
    namespace: dict[str, Any],
    contract: str,
    config: dict[str, Any] | None,
    recognised: Recognised | None,
    several: Failure,
) -> Entry:
    """Return one entry that calls all the evaluators that `several` lists; the score is the mean of their scores."""

    def one(name: str) -> Entry:
        return find(namespace, contract=contract, name=name, config=config, recognised=recognised)

    return _all_of(namespace, several, one)


def _all_of(namespace: dict[str, Any], several: Failure, one: Callable[[str], Entry]) -> Entry:
    from evaluator_runner.every import find_every

    lines = namespace["__loader__"].get_source("evaluator").split("\n")
    found = find_every(list(several.equal), one, lines, several.uses, instead=several.instead)
    message = f"the score is the mean of {several.shown}; to use one of them, name it in `settings.entry`"
    found.notes += [{"code": "several_entries", "message": message}, *several.notes]
    return found


def _by_columns(namespace: dict[str, Any]) -> Entry | None:
    """Return one entry for the functions whose parameters are columns of the row, if no other entry was found."""
    several = dialect_of("function").by_columns(namespace)
    if several is None:
        return None
    found: Entry
    if len(several.equal) == 1:
        found = dialect_of("function").find(namespace, name=several.equal[0], config={})
    else:
        found = _all_of(namespace, several, lambda name: dialect_of("function").find_by_columns(namespace, name))
    found.contract, found.source = "function", "inferred"
    found.reason = "no other evaluator was found, so each parameter gets the column of its name"
    return found


def describe(namespace: dict[str, Any], lines: list[str]) -> list[dict[str, Any]]:
    """Return a description of each evaluator class. `lines` are the lines of the code, to say where an error is."""
    return [found for module in _MODULES if hasattr(module, "describe") for found in module.describe(namespace, lines)]


def may_use_prebound(contract: str, name: str | None, compiled: CodeType) -> bool:
    """Return whether code that has not run yet should get the modules of `prebound.NAMES`."""
    if contract != "auto":
        return bool(dialect_of(contract).PREBOUND)
    plain = [module for module in _MODULES if hasattr(module, "is_plain") and module.is_plain(compiled)]
    return name is not None or not plain or bool(plain[0].PREBOUND)


def _meant(namespace: dict[str, Any], name: str | None, recognised: Recognised | None) -> Any:
    if recognised is not None:
        if recognised.step == DECORATED:
            others = [one for one in _MODULES if hasattr(one, "SDK") and one.applies(namespace, name)]
            if others:
                signs = {one.CONTRACT: "a class of its package" for one in others}
                raise _ambiguous({recognised.dialect.CONTRACT: recognised.reason, **signs})
        return recognised.dialect
    for module in _MODULES:
        if module.applies(namespace, name):
            return module
    raise does_not_fit(namespace, name or "evaluate")


def _ambiguous(signs: dict[str, str]) -> Failure:
    return Failure(
        "entry_ambiguous",
        "the code may be written for " + " or for ".join(f"{contract} ({sign})" for contract, sign in signs.items()),
        hint=f"say which one you mean: set `contract` to {' or '.join(signs)}",
    )
