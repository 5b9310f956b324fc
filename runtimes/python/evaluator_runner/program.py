"""Loads an evaluator: compiles the code, runs its module level once, finds its entry."""

from __future__ import annotations

import builtins as _builtins
import os
import sys

from evaluator_runner import (
    absent,
    absent_keys,
    client_keys,
    dialects,
    failures,
    interpreter_hooks,
    later,
    modules,
    pasted,
    prebound,
    unreached,
)
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from evaluator_runner.entry import Entry
    from evaluator_runner.options import Options
    from evaluator_runner.whole import Whole

_Module = type(sys)
_COROUTINE = 0x80
_SHOWN_PARAMETERS = 100
_TEXT_CHARS = 200


class LoadFailed(Exception):
    """The code cannot be loaded. `error` has the protocol's format; `classes` describes the evaluator classes.

    If an entry was found, `names` and `source` have the meaning that they have in `Program`.
    """

    def __init__(
        self,
        error: dict[str, Any],
        classes: list[dict[str, Any]] | None = None,
        *,
        names: list[str] | None = None,
        source: str = "",
    ) -> None:
        super().__init__(error["message"])
        self.error = error
        self.classes = classes or []
        self.names = names or []
        self.source = source


class _SourceLoader:
    """Gives `linecache` the source of a module without a file, for `inspect` and the user's own tracebacks."""

    def __init__(self, code: str) -> None:
        self._code = code

    def get_source(self, _name: str) -> str:
        return self._code


class Program:
    """A loaded evaluator.

    Attributes:
      entry: The entry that is called for each row.
      lines: The source, for tracebacks.
      notes: Remarks for the author.
      classes: Descriptions of its evaluator classes, if the load asked for them.
      names: Module-level names that are called for a row.
      not_loaded: Modules, and names in modules, that are absent but not needed to run the evaluator.
      source: The code that was run: the pasted code, a part of it, or a repaired form of it.
      needs_loop: Whether awaiting the result may need an asyncio loop.
    """

    __slots__ = ("classes", "entry", "lines", "names", "needs_loop", "not_loaded", "notes", "source")

    def __init__(self, found: Entry, lines: list[str], *, needs_loop: bool) -> None:
        self.entry = found
        self.lines = lines
        self.needs_loop = needs_loop
        self.notes: list[dict[str, str]] = []
        self.classes: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.not_loaded: list[str] = []
        self.source = ""

    def description(self) -> dict[str, Any]:
        """Return the fields of a `loaded` header that describe the program."""
        found = self.entry
        return {
            "contract": found.contract,
            "contract_source": found.source,
            "reason": found.reason[:_TEXT_CHARS],
            "entry": found.name[:_TEXT_CHARS],
            "parameters": [name[:_TEXT_CHARS] for name in found.parameters[:_SHOWN_PARAMETERS]],
            "notes": self.notes,
            "together": found.together,
        }


def load(body: dict[str, Any], order: dict[str, Any], *, options: Options) -> Program:
    """Compile the code in a `load` frame's body and run it as module `evaluator`; `order` is the frame's header.

    Raises:
      LoadFailed: the code does not compile, raises an error, or defines no entry.
    """
    code = body["code"]
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    try:
        recognised, held, run = _read(code, order)
        compiled, builtins = _compile(run, order["policy"], options)
    except Failure as failure:
        raise LoadFailed(failures.from_failure(failure)) from None
    except (SyntaxError, ValueError, MemoryError, RecursionError) as raised:
        plain = pasted.without_magics(code)
        if plain is not None and isinstance(raised, SyntaxError):
            return _load_plain(body, order, plain, options=options)
        error = failures.from_syntax(raised, lines, fix=_fix(raised, code))
        if order.get("repair") and (error.get("fix") or {}).get("unique"):
            return _load_repaired(body, order, error["fix"]["code"], options=options)
        raise LoadFailed(error) from None
    module = _Module("evaluator")
    namespace = module.__dict__
    namespace.update({"__builtins__": vars(_builtins)})  # the evaluator's built-ins, not the runner's own copy
    own_path = body.get("path") or FILENAME
    source = code if held is None or held.factories else held.code
    namespace.update(builtins, __file__=own_path, __loader__=_SourceLoader(source))
    sys.modules["evaluator"] = module
    bound = _prebind(namespace, run, compiled, order) if recognised is None else _given(namespace, run, recognised)
    typing = prebound.bind_typing(namespace, run, FILENAME)
    whole = None
    if order["policy"] != "restricted":
        whole = _prepare_imports(namespace, body, own_path, run=run, flags=compiled.co_flags)
    described: list[dict[str, Any]] = []
    names: list[str] = []
    try:
        _run(namespace, compiled, whole, held)
        if order.get("check"):
            described = _described(namespace, lines, whole, contract=order["contract"])
        found = _find(namespace, order, body, recognised=recognised, whole=whole)
        names = _names_of(found, namespace)
        if whole is not None:
            _require(whole, found, names, namespace)
    except BaseException as raised:  # noqa: BLE001 - user code may raise anything
        error = failures.from_exception(raised, lines, general="load_error")
        raise LoadFailed(error, described, names=names, source=run) from None
    loaded = _finish(found, namespace, bound, lines=lines, code=code, typing=typing)
    loaded.names = names
    if held is not None:
        loaded.notes.insert(0, {"code": "entry_found_inside", "message": held.note})
    loaded.classes, loaded.source = described, run
    return loaded


def _described(
    namespace: dict[str, Any], lines: list[str], whole: Whole | None, *, contract: str
) -> list[dict[str, Any]]:
    """Describe the evaluator classes.

    If a class needs an import that failed, raise the error of that import.
    """
    described = dialects.describe(namespace, lines)
    if whole is not None and (described or contract != "auto"):  # a class may be missing because an import failed
        whole.require([str(one["name"]) for one in described], namespace)
    return described


def _require(whole: Whole, found: Entry, names: list[str], namespace: dict[str, Any]) -> None:
    """Raise the error of a failed import that the entry needs.

    If the entry calls several evaluators and only some of them need the import, these fail for each row instead.
    """
    lacking = {name: why for name in found.parts if (why := whole.lacks(name)) is not None}
    if not lacking or len(lacking) == len(found.parts):
        whole.require(names, namespace)
    for name, why in lacking.items():
        found.parts[name].stop(why)


def _run(namespace: dict[str, Any], compiled: CodeType, whole: Whole | None, held: pasted.Held | None) -> None:
    """Run the code as a module, then the factories of an evaluator inside it."""
    if whole is None:
        interpreter_hooks.call(exec, (compiled, namespace))
    else:
        whole.run(namespace)
    if held is not None:
        interpreter_hooks.call(held.open, (namespace,))


def _find(
    namespace: dict[str, Any],
    order: dict[str, Any],
    body: dict[str, Any],
    *,
    recognised: dialects.Recognised | None,
    whole: Whole | None,
) -> Entry:
    """Return the entry.

    Raises:
      Failure: there is no entry.
      ImportError: a decorator from a missing package has replaced the entry.
    """
    try:
        return dialects.find(
            later.without_placeholders(namespace),
            contract=order["contract"],
            name=order["entry"],
            config=body.get("config"),
            recognised=recognised,
        )
    except Failure:
        if whole is not None:
            whole.require_hidden(namespace)
        raise


def _names_of(found: Entry, namespace: dict[str, Any]) -> list[str]:
    """Return the module-level names that are called for a row."""
    if found.parts:
        return list(found.parts)
    made = [found.call, getattr(found.call, "__self__", None)]
    same = [name for name, one in namespace.items() if one is not None and any(one is other for other in made)]
    return [found.name.partition(".")[0], *found.uses, *same]


def _read(code: str, order: dict[str, Any]) -> tuple[dialects.Recognised | None, pasted.Held | None, str]:
    """Return the code's dialect (None if not yet known), the evaluator inside it (or None), and the code to run."""
    recognised, held = dialects.recognise(code, contract=order["contract"], name=order["entry"]), None
    may_hold = (recognised is None) == (order["contract"] == "auto")
    if may_hold and order["policy"] != "restricted":
        held = pasted.find_held(code, order["entry"], order["contract"])
    if held is not None:
        code, recognised = held.code, held.recognised
    return recognised, held, code if recognised is None else recognised.source(code)


def _prepare_imports(
    namespace: dict[str, Any], body: dict[str, Any], own_path: str, *, run: str, flags: int
) -> Whole | None:
    """Let the code import its own files and absent well-known packages.

    Return the code's statements if they have to run one by one. Otherwise return None.
    """
    known = body.get("known") or {}
    client_keys.give_keys([body["code"], *(body.get("files") or {}).values()], os.environ)
    modules.install(body, own_path)
    later.install(body["code"], known)
    if package := modules.package_of(own_path):
        namespace["__package__"] = package
    absent.install(body["code"], package)
    unreached.install()
    absent_keys.install()
    if not known and not later.names_client(run) and "\nfrom ." not in f"\n{run}":
        return None
    from evaluator_runner.whole import whole_of

    return whole_of(run, flags, known)


def _load_plain(body: dict[str, Any], order: dict[str, Any], code: str, *, options: Options) -> Program:
    try:
        program = load({**body, "code": code}, order, options=options)
    except LoadFailed as failed:
        first = next(line for line in body["code"].split("\n") if line[:1] in {"%", "!"})
        failed.error["message"] += f"; `{first[:_TEXT_CHARS]}` was left out"
        raise
    message = "lines that begin with % or !, a notebook's magics, were left out; pin what they install in `packages`"
    program.notes.insert(0, {"code": "magics", "message": message})
    return program


def _fix(raised: BaseException, code: str) -> dict[str, Any] | None:
    """Return a `fix` (see runtimes/PROTOCOL.md): the code that was probably meant. None if there is no such code."""
    if not isinstance(raised, SyntaxError):
        return None
    from evaluator_runner.repair import find_fix  # the import takes 10 ms, so it is done only after an error

    return find_fix(code)


def _load_repaired(body: dict[str, Any], order: dict[str, Any], code: str, *, options: Options) -> Program:
    program = load({**body, "code": code}, {**order, "repair": False}, options=options)
    message = (
        "the code had lost its indentation, and ran with the only indentation that fits; /v1/check shows it as `fix`"
    )
    program.notes.insert(0, {"code": "repaired", "message": message})
    return program


def _compile(code: str, policy: str, options: Options) -> tuple[CodeType, dict[str, Any]]:
    if policy != "restricted":
        return compile(code, FILENAME, "exec", dont_inherit=True), {}
    if options.restricted is None:
        raise Failure("load_error", "the restricted policy is not installed in this sandbox")
    # first in the path, so that a RestrictedPython that the evaluator pins does not replace this one
    sys.path.insert(0, options.restricted)
    try:
        from evaluator_runner import restricted
    finally:
        sys.path.remove(options.restricted)
    return restricted.compile_code(code, [place for place in (options.packages, options.sdk) if place is not None])


def _prebind(namespace: dict[str, Any], code: str, compiled: CodeType, order: dict[str, Any]) -> dict[str, Any]:
    """Bind the documented modules before the code runs, since module-level code may use them; return these modules."""
    if not any(name in code for name in prebound.NAMES):
        return {}
    if not dialects.may_use_prebound(order["contract"], order["entry"], compiled):
        return {}
    return prebound.bind(namespace, prebound.unbound_names(code, FILENAME))


def _given(namespace: dict[str, Any], code: str, recognised: dialects.Recognised) -> dict[str, Any]:
    """Bind the names that the recognised dialect allows without imports; return what was bound."""
    given, modules, imports = recognised.names(), recognised.modules, recognised.imports
    bound: dict[str, Any] = {}
    for name in prebound.unbound_names(code, FILENAME, frozenset((*given, *modules, *imports))):
        if name in given:
            bound[name] = given[name]
        elif name in modules:
            bound[name] = later.import_or_stand_in(modules[name], name)
        elif (one := prebound.imported(imports[name])) is not None:
            bound[name] = one
    namespace.update(bound)
    return bound


def _finish(
    found: Entry, namespace: dict[str, Any], bound: dict[str, Any], *, lines: list[str], code: str, typing: list[str]
) -> Program:
    program = Program(found, lines, needs_loop=_may_suspend(found.call, code))
    program.notes.extend(found.notes)
    absent_keys.names.clear()
    program.not_loaded = later.loaded()
    dialect = dialects.dialect_of(found.contract)
    gives = dialect.PREBOUND or any(hasattr(dialect, one) for one in ("names", "MODULES", "IMPORTS"))
    names = [name for name, module in bound.items() if gives and namespace.get(name) is module] + typing
    if not gives:
        prebound.unbind(namespace, bound)
    if names:
        program.notes.append({"code": "prebound", "message": f"used without import: {', '.join(names)}"})
    return program


def _may_suspend(call: Callable[..., Any], code: str) -> bool:
    """Return whether the entry is a coroutine function that may await something.

    For such an entry, asyncio (40 ms) is imported during the load.
    """
    flags = getattr(getattr(call, "__code__", None), "co_flags", 0)
    return bool(flags & _COROUTINE) and ("await" in code or "async" in code.replace("async def", ""))
