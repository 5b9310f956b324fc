"""Runs all evaluators in a file as one, for `settings.entry: "*"`.

All evaluators get the same row, and each has its own outcome.
"""

from __future__ import annotations

from evaluator_runner import compared, failures, hidden, unreached
from evaluator_runner.binding import bind, called
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.encode import encode_result
from evaluator_runner.entry import Entry
from evaluator_runner.failures import Failure
from evaluator_runner.signature import Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EVERY = "*"
_MOST = 100
_MESSAGE = 500
_LISTED = 10
_BYTES = 1 << 30  # maximum size of one value in bytes; `limits.result_kb` applies to all values together


class _Signatures(Signature):
    """The parameters of all evaluators, as a check shows them. A call accepts variables with any names."""

    def __init__(self, shown: list[str]) -> None:
        super().__init__([], positional_only=0, required=0)
        self.var_keyword = "variables"
        self._shown = shown

    @property
    def names(self) -> list[str]:
        return self._shown


def find_every(
    names: list[str],
    find: Callable[[str], Entry],
    lines: list[str],
    uses: dict[str, set[str]] | None = None,
    *,
    instead: bool = False,
) -> Entry:
    """Return one entry that calls every evaluator among `names`; `find` returns the entry of a single evaluator.

    If `uses` is given, its keys are evaluators that run only for rows with all their columns, and only if no other
    running evaluator uses them. Its values are the names that each evaluator uses. With `instead`, these evaluators run
    only for rows to which none of the other evaluators applies: each of the others lacks a column.

    Raises:
      Failure: there are no evaluators, or they have several contracts.
    """
    found: dict[str, Entry] = {}
    refused: dict[str, Failure] = {}
    broken: Exception | None = None
    for name in names[:_MOST]:
        try:
            found[name] = find(name)
        except Failure as failure:
            refused[name] = failure
        except Exception as raised:  # noqa: BLE001 - the class of one evaluator may raise anything
            broken = broken or raised
            refused[name] = Failure(
                "load_error", f"creating an instance raised {type(raised).__name__}: {raised}"[:_MESSAGE]
            )
    if not found and broken is not None:
        raise broken
    if not found:
        first = next(iter(refused.values()), None)
        raise first or Failure("entry_not_found", "the code defines no evaluator", hint="define a function or a class")
    contracts = {one.contract for one in found.values()}
    if len(contracts) > 1:
        told = ", ".join(f"{name} ({one.contract})" for name, one in list(found.items())[:10])
        message = f"the evaluators have different contracts: {told}"
        raise Failure("entry_ambiguous", message, hint=f"set `contract` to one of {', '.join(sorted(contracts))}")
    return _one_of(found, refused, _calls(found, lines, uses or {}, instead=instead))


def _one_of(found: dict[str, Entry], refused: dict[str, Failure], calls: Callable[..., Any]) -> Entry:
    first = next(iter(found.values()))
    made = Entry(EVERY, calls)
    made.decode = first.decode
    made.parts = found
    made.signature = _Signatures([_shown(name, one) for name, one in found.items()])
    made.contract, made.source = first.contract, first.source
    made.reason = f"{len(found)} evaluators: {', '.join(found)}; {first.reason}"
    made.notes = [note for one in found.values() for note in one.notes if note["code"] != "several_entries"]
    for name, failure in refused.items():
        message = f"`{name}` is not called, because it is not an evaluator of {first.contract}: {failure.message}"
        made.notes.append({"code": "not_an_entry", "message": message})
    return made


def _shown(name: str, found: Entry) -> str:
    return f"{name}({', '.join(found.parameters)})" if found.signature is not None else name


def _calls(
    found: dict[str, Entry], lines: list[str], uses: dict[str, set[str]], *, instead: bool
) -> Callable[..., Any]:
    binds = {name: one.bind for name, one in found.items()}

    async def every(*args: Any, **body: Any) -> dict[str, Any]:
        outcomes = []
        others = {name: one for name, one in found.items() if name not in uses}
        is_instead = instead and any(_has_columns(binds[name], list(args)) for name in others)
        chosen = others if is_instead else _that_apply(found, uses, binds, list(args))
        for name, one in chosen.items():
            unreached.take()  # discard the hosts that an earlier evaluator could not reach
            watch = hidden.Watch()
            try:
                own, named = _arguments(one, _copy(list(args)), _copy(body))
                compared.look(one.compared, own, named)
                value = called(one.call, own, named)
                if hasattr(type(value), "__await__"):
                    value = await value
                if one.convert is not None:
                    value = one.convert(value)
                if in_vain := unreached.take():
                    raise ConnectionError(in_vain)
                if lacking := watch.end():
                    raise ImportError(
                        f"it needs `{lacking}`, which is missing, but hides the failed import", name=lacking
                    )
                outcome: dict[str, Any] = {"result": encode_result(value, limit=_BYTES).decode()}
            except MemoryError:
                raise
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - user code may raise anything
                watch.end()
                outcome = {"error": failures.from_exception(raised, lines, general="user_exception")}
            outcomes.append({"name": name, **outcome})
        return {"every": outcomes}

    return every


def _that_apply(
    found: dict[str, Entry], uses: dict[str, set[str]], binds: dict[str, Callable[..., Any] | None], args: list[Any]
) -> dict[str, Entry]:
    """Return the evaluators to run.

    An evaluator in `uses` does not run if the row lacks one of its columns, or if another running evaluator uses it.

    Raises:
      Failure: there is no evaluator for which the row has all columns.
    """
    if not uses:
        return found
    able = [name for name in found if name not in uses or _has_columns(binds[name], args)]
    if not able:
        shown = ", ".join(_shown(name, one) for name, one in list(found.items())[:_LISTED])
        message = f"none of these functions finds all its columns in the row: {shown}"
        hint = (
            "add the columns that the evaluator needs; if it takes its arguments by position, name it in "
            "`settings.entry`"
        )
        raise Failure("missing_input", message, hint=hint)
    used = {other for name in able for other in uses.get(name, ()) if other != name}
    return {name: found[name] for name in able if name not in used or name not in uses}


def _has_columns(bind: Callable[..., Any] | None, args: list[Any]) -> bool:
    try:
        _ = bind is None or bind(_copy(args))
    except Failure:
        return False
    return True


def _arguments(one: Entry, args: list[Any], body: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    if one.bind is not None:
        return one.bind(args)
    return (args, body) if args else bind(one, body)


def _copy(value: Any) -> Any:
    """Return a copy of a JSON value, so that changes by one evaluator do not reach the others."""
    if isinstance(value, dict):
        return type(value)({name: _copy(one) for name, one in value.items()})
    return [_copy(one) for one in value] if isinstance(value, list) else value
