"""Defines an evaluator's entry: what is called for each row. Finds plain functions, and their contracts."""

from __future__ import annotations

from evaluator_runner import jsontext, signature
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from evaluator_runner.compared import Pair

EVALUATE = ("inputs", "outputs", "trace")
EVALUATE_V1 = ("app_params", "inputs", "output", "correct_answer")
"""The arguments of legacy evaluators, by position."""

_READ_CHARS = 20_000  # maximum number of characters to read from a string that may contain code
_LEGACY_FIRST = "app_params"
_LEGACY_FOURTH = {"correct_answer", "datapoint"}
SCORING = {"grade", "grader", "metric", "reward", "rewards", "score", "scorer"}
"""Words that say that a function scores, if they are in its name."""
_MAKING = {"build", "create", "define", "load", "make", "register"}
_LIKELY = SCORING | {"accuracy", "check", "correct", "correctness", "eval", "evaluate", "evaluator", "f1", "judge", "match", "precision", "quality", "recall", "results", "validate", "verify"}  # fmt: skip  # noqa: E501
"""Words in the names of functions that may score. Error messages list such functions first."""
_METHODS = ("evaluate", "score", "measure", "__call__")
_OF_RUNS = "evaluate_run"
"""The method of a RunEvaluator, a class in the SDK of a platform."""
_FIELDS_OF_CONTEXT = {
    "attributes": "inputs.get('attributes', {})",
    "duration": "inputs.get('duration')",
    "metadata": "inputs.get('metadata')",
    "metrics": "inputs.get('metrics', {})",
    "name": "inputs.get('name')",
}
"""Fields of the object in which pydantic-evals passes a row, besides inputs, output and expected output."""
JUDGES: dict[str, tuple[str, ...]] = {}
"""By platform, the modules whose classes and graders ask a model if the light modules lack them; dialects add these."""
_EXPECTED = (
    "define `def evaluate(inputs, outputs, trace)`, the legacy `def evaluate(app_params, inputs, output, "
    "correct_answer)`, or `def main(...)` with the names of the variables it needs"
)


class Entry:
    """The function that is called for each row, and how to call it.

    Attributes:
      call: The callable under `name`, such as the user's function.
      contract: The contract (dialect) of the entry.
      source: Whether the contract is `declared` or `inferred`.
      reason: Why this contract applies, as text for people.
      decode: Function that decodes the body of a row.
      bind: Converts the decoded arguments of a row to positional and keyword arguments; None to use them as they are.
      convert: Converts the returned (and awaited) value to the value to encode; None to encode the value as it is.
      name: Name under which the function was found.
      signature: Parameters of the function; None when they cannot be read.
      notes: Remarks for the author.
      places: Names of the arguments of a positional call, in order; empty for any other call.
      together: Whether `call` can also score many rows in one call (argument `together`).
      parts: The evaluators that `call` calls, by name, if there are several.
      facts: Facts about the evaluator that its code does not show, as `facts_of` returns them; None to read the code.
      uses: Module-level names that `call` calls, if the platform adds up several evaluators.
      compared: Pairs of values that `call` takes out of its arguments and compares (see `compared`).
    """

    __slots__ = (
        "bind", "call", "compared", "contract", "convert", "decode", "facts", "name", "notes", "parts", "places",
        "reason", "signature", "source", "together", "uses",
    )  # fmt: skip

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call
        self.signature = signature.read(call)
        self.together = False
        self.parts: dict[str, Entry] = {}
        self.uses: list[str] = []
        self.compared: list[Pair] = []
        self.facts: dict[str, Any] | None = None
        self.places: tuple[str, ...] = ()
        self.decode = jsontext.decode
        self.bind: Callable[[list[Any]], tuple[list[Any], dict[str, Any]]] | None = None
        self.convert: Callable[[Any], Any] | None = None
        self.notes: list[dict[str, str]] = []
        self.contract = ""
        self.source = ""
        self.reason = ""

    @property
    def parameters(self) -> list[str]:
        """Return the parameters as they appear in code; for a positional call, in the order of its arguments."""
        if self.signature is None:
            return []
        named = self.signature.named_places(self.places)
        if not named:
            return self.signature.names
        left = list(self.signature.positional)
        ordered = [one if one in named else (left.pop(0) if left else "_") for one in self.places]
        while ordered[-1] == "_":
            ordered.pop()
        return [*ordered, *(one for one in self.signature.names if one not in ordered)]

    def pass_by_name(self) -> None:
        """If keyword-only parameters have the names of positional arguments, pass these arguments by name."""
        known, places, inner = self.signature, self.places, self.bind
        if known is None or not (named := known.named_places(places)):
            return

        def bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
            given, more = (args, {}) if inner is None else inner(args)
            by_place = dict(zip(places, given, strict=False))
            by_name = {one: by_place.pop(one) for one in named if one in by_place}
            if known.positional or known.var_positional is not None:
                return list(by_place.values()), {**more, **by_name}
            return [], {**more, **(by_place if known.var_keyword is not None else {}), **by_name}

        self.bind = bind

    def stop(self, why: str) -> None:
        """Make every call fail, because the entry needs an import that is missing."""

        def stopped(*_args: Any, **_kwargs: Any) -> None:
            raise ImportError(why)

        self.call, self.bind, self.convert = stopped, lambda args: (args, {}), None


def find_function(namespace: dict[str, Any], name: str, arguments: tuple[str, ...] | None = None) -> Entry:
    """Return an `Entry` for the function with that name; check that its parameters accept `arguments`, if given.

    Raises:
      Failure: there is no such function, or the arguments do not fit.
    """
    if not is_function(namespace.get(name)):
        raise _not_found(namespace, name)
    entry = Entry(name, namespace[name])
    if arguments is not None:
        if entry.signature is not None and not entry.signature.fits(arguments):
            raise _does_not_bind(entry, arguments)
        entry.places = arguments
    entry.reason = f"function {name}"
    if entry.signature is not None:
        count = len(entry.signature.names)
        entry.reason += f" with {count} parameter{'' if count == 1 else 's'}"
    return entry


def object_of(namespace: dict[str, Any], name: str, config: dict[str, Any]) -> Any:
    """Return an instance of class `name`: an instance that the code has made, or else a new instance.

    If there is a `config`, the instance is always new. If `name` is the only required argument that the config lacks,
    the name of the class is passed as `name`.

    Raises:
      Failure: the class needs arguments that the config lacks.
    """
    kind = namespace[name]
    made = [one for one in namespace.values() if type(one) is kind]
    if made and not config:
        return made[0]
    initial = signature.read(kind.__init__) if type(kind.__init__) is type(is_function) else None
    needed = initial.needed() if initial is not None else []
    missing = [one for one in needed[1:] if one not in config]
    if missing == ["name"]:
        return kind(**config, name=name)
    if missing:
        raise Failure(
            "load_error",
            f"an object of {name} cannot be created without {', '.join(missing)}",
            hint=(
                f"make one in the code (`metric = {name}(…)`), give the class defaults, "
                "or put the values into `settings.config`"
            ),
        )
    return kind(**config)


def is_function(value: Any) -> bool:
    """Return whether a value is callable and not a class."""
    return callable(value) and not isinstance(value, type)


def evaluate_contract(namespace: dict[str, Any], name: str | None) -> str | None:
    """Return the contract that function `name` (by default `evaluate`) fits: `evaluate`, `evaluate-v1`, or None.

    Raises:
      Failure: both contracts fit, because the function takes any arguments.
    """
    name = name or "evaluate"
    if name == "main" or not is_function(namespace.get(name)):
        return None
    parameters = signature.read(namespace[name])
    if parameters is None or (parameters.var_positional is not None and not parameters.positional):
        raise Failure(
            "entry_ambiguous",
            f"`{name}` takes any number of arguments, so its contract may be evaluate (inputs, outputs, trace) "
            "or evaluate-v1 (app_params, inputs, output, correct_answer)",
            hint="set `contract` to evaluate or evaluate-v1",
        )
    names = [*parameters.positional, *parameters.keyword_only]
    if parameters.fits(EVALUATE_V1) and _looks_legacy(names):
        return "evaluate-v1"
    if parameters.fits(EVALUATE):
        return "evaluate"
    return "evaluate-v1" if parameters.fits(EVALUATE_V1) else None


def _looks_legacy(names: list[str]) -> bool:
    return names[:1] == [_LEGACY_FIRST] or (len(names) > 3 and names[3] in _LEGACY_FOURTH)


def note_on_main(namespace: dict[str, Any], entry: Entry) -> None:
    """If the code also has a `main` with parameters, note for the author that it is not called."""
    main = namespace.get("main")
    if entry.call is main or not (is_function(main) and _is_ours(main)):
        return
    known = signature.read(main)
    if known is not None and known.needed():
        message = f"`{entry.name}` is called, and `main` is not; if you mean `main`, name it in `settings.entry`"
        entry.notes.append({"code": "several_entries", "message": message})


def does_not_fit(namespace: dict[str, Any], name: str) -> Failure:
    """Return the failure for code without an entry: the name is missing, or the function's parameters do not fit."""
    if is_function(namespace.get(name)):
        return _does_not_bind(Entry(name, namespace[name]), EVALUATE)
    return _not_found(namespace, name)


def _does_not_bind(entry: Entry, wanted: tuple[str, ...]) -> Failure:
    known = entry.signature
    names = known.names if known is not None else []
    count = f"{len(names)} parameter{'' if len(names) == 1 else 's'} ({', '.join(names)})" if names else "no parameters"
    hint = f"write `def {entry.name}({', '.join(wanted)})`; you can choose the names, but not how many there are"
    unknown = [] if known is None else [one for one, has in known.keyword_only.items() if not has and one not in wanted]
    if unknown:
        hint = (
            f"`{unknown[0]}` is keyword-only, and the host has no value of this name: rename it, or give it a default"
        )
    called = f"it is called with {len(wanted)} arguments: {', '.join(wanted)}"
    return Failure("binding_error", f"`{entry.name}` takes {count}, but {called}", hint=hint)


def _not_found(namespace: dict[str, Any], wanted: str) -> Failure:
    own = {name: value for name, value in namespace.items() if not name.startswith("__")}
    functions = [name for name, value in own.items() if is_function(value) and _is_ours(value)]
    classes = [name for name, value in own.items() if isinstance(value, type) and _is_ours(value)]
    if wanted in own:
        kind = "a class" if isinstance(own[wanted], type) else f"of type {type(own[wanted]).__name__}"
        message = f"`{wanted}` is {kind}, not a function"
    else:
        names = "`evaluate` or `main`" if wanted == "evaluate" else f"`{wanted}`"
        message = f"the code defines no function named {names}"
        if classes and functions and _are_for_classes(own, functions, classes):
            functions = []
            whose = "them" if len(classes) > 1 else "it"
            message += f"; it defines {', '.join(classes[:10])}, and functions for {whose}"
        elif functions:
            more = [name for name in classes if _method_of(own[name], wanted)]
            shown = sorted(functions, key=lambda name: (name.startswith("_"), not is_likely(name)))
            message += f"; it defines {', '.join(shown[:10])}"
            message += f" and the class{'' if len(more) == 1 else 'es'} {', '.join(more[:10])}" if more else ""
        elif classes:
            message += f"; it defines only {', '.join(classes[:10])}"
    return Failure(
        "entry_not_found",
        message,
        hint=_hint(wanted, _takers(own, functions, classes), {name: own[name] for name in classes}, own),
    )


def makes(name: str) -> bool:
    """Return whether a function's name begins with a verb such as `make`, `load` or `register`."""
    return name.lower().strip("_").partition("_")[0] in _MAKING


def _takers(own: dict[str, Any], functions: list[str], classes: list[str]) -> list[str]:
    """Return the functions that are probably evaluators: those that take a value and do not define inner functions.

    If there are none, return those that take a value, or all functions if no class has a scoring method. If a class has
    one, functions that make something are left out: they may make an object of the class.
    """
    has_class = any(_scoring(vars(own[name])) for name in classes)
    functions = [name for name in functions if not (has_class and makes(name))]
    takers = [name for name in functions if (known := signature.read(own[name])) is None or known.names]
    plain = [name for name in takers if not any(one.co_name[:1] != "<" for one in _codes_of(own[name])[1:])]
    return plain or takers or ([] if has_class else functions)


def _are_for_classes(own: dict[str, Any], functions: list[str], classes: list[str]) -> bool:
    """Return whether a class has a method that is named like a scorer, and no function may be the evaluator instead.

    No function may be the evaluator if other code uses all functions, or if no function has a name that says that it
    scores.
    """
    is_for_class = _used_names(own).issuperset(functions) or not any(map(is_likely, functions))
    return is_for_class and any(_scoring(vars(own[name])) for name in classes)


def _scoring(methods: Any) -> list[str]:
    """Return a class's methods that are named like a scorer; those that no other method uses come first."""
    return [key for key in _public_methods(methods) if SCORING.intersection(key.lower().split("_"))]


def _public_methods(methods: Any) -> list[str]:
    """Return a class's public methods; those that no other method uses come first."""
    public = [key for key, one in methods.items() if not key.startswith("_") and is_function(one)]
    used = _used_names({key: methods[key] for key in public})
    return sorted(public, key=lambda key: key in used)


def has_scoring_class(own: dict[str, Any]) -> bool:
    """Return whether a class of the code has a public method that is named like a scorer."""
    classes = [one for one in own.values() if isinstance(one, type) and _is_ours(one)]
    return any(_scoring(vars(one)) for one in classes)


def is_likely(name: str) -> bool:
    """Return whether the name of a function has a word that says that it may score."""
    return bool(_LIKELY.intersection(name.lower().split("_")))


def _builder(own: dict[str, Any], functions: list[str]) -> str | None:
    """Return the name of a function whose strings contain a function's source; None if there is no such function.

    If the code has no functions, return the name of a string with a function's source.
    """
    names = functions or [name for name, value in own.items() if type(value) is str]
    return next((name for name in names if any(map(_is_code, _texts_of(own[name])))), None)


def _texts_of(value: Any) -> list[str]:
    if type(value) is str:
        return [value]
    constants = getattr(getattr(value, "__code__", value), "co_consts", ())
    inner = [text for one in constants if hasattr(one, "co_consts") for text in _texts_of(one)]
    return [one for one in constants if type(one) is str and one != getattr(value, "__doc__", None)] + inner


def _is_code(text: str) -> bool:
    import re

    return re.search(r"^[ \t]*(?:async )?def \w{1,100}\(", text[:_READ_CHARS], re.MULTILINE) is not None


def _call_of(classes: dict[str, Any], wanted: str) -> str:
    """Return a line of code that defines `wanted` by a method of a class, if possible by a scoring method."""
    classes = _concrete(classes)
    for name, one in classes.items():
        if (method := _method_of(one, wanted)) is not None:
            return _line_of(_made(name, one), one, method, wanted)
    for name, one in classes.items():
        own = {key: value for key, value in vars(one).items() if not key.startswith("_")}
        static = next((key for key, value in own.items() if isinstance(value, staticmethod | classmethod)), None)
        if static is not None:
            return f"{wanted} = {name}.{static}"
        if scoring := _scoring(own):
            return _line_of(_made(name, one), one, scoring[0], wanted)
    with_methods = {name: found for name, one in classes.items() if (found := _public_methods(vars(one)))}
    for name, methods in with_methods.items():
        if likely := [one for one in methods if is_likely(one) or methods == ["run"]]:
            return _line_of(_made(name, classes[name]), classes[name], min(likely, key=len), wanted)
    name = next(iter(with_methods or classes))
    return f"def {wanted}(inputs, outputs, trace): return {_made(name, classes[name])}.METHOD(outputs)"


def _made(name: str, kind: Any) -> str:
    """Return the code that makes an object of a class; `…` stands for each argument that the class needs."""
    initial = signature.read(kind.__init__) if type(kind.__init__) is type(is_function) else None
    needed = [] if initial is None else initial.needed()[1:]
    return f"{name}({', '.join(f'{one}=…' for one in needed)})"


def _line_of(made: str, kind: type, method: str, wanted: str) -> str:
    """Return a line of code that the author can add: it defines `wanted` by a method of the object that `made` makes.

    If the method takes other arguments, the line passes the values of a row to them.
    """
    from evaluator_runner.roles import fits_places, roles_of

    call = made if method == "__call__" else f"{made}.{method}"
    known = signature.read(getattr(kind, method, None))
    names = [] if known is None else known.positional[1 : known.required]
    optional = [] if known is None else known.positional[max(known.required, 1) :]
    truths = [] if known is None else [one for one in optional if roles_of(known.positional[1:]).get(one) == "truth"]
    known_names = method in _METHODS or roles_of(names)
    by_place = not names or (len(names) == len(EVALUATE) and known_names and fits_places(names))
    if wanted != "evaluate" or known is None or known.keyword_only or (by_place and not (names and truths)):
        return f"{wanted} = {call}"
    roles = roles_of(names)
    others = [name for name in names if name not in EVALUATE] or names
    output = next((name for name in names if roles.get(name) == "output"), others[0])
    fields = {name: name if name in EVALUATE else f"inputs['{name}']" for name in names} | {output: "outputs"}
    given = ", ".join([*(fields[name] for name in names), *(f"{one}=inputs['{one}']" for one in truths)])
    return f"def evaluate(inputs, outputs, trace): return {call}({given})"


def _concrete(classes: dict[str, Any]) -> dict[str, Any]:
    """Return the classes that are not abstract, protocols or bases of other classes; if there are none, all classes."""
    bases = {base for one in classes.values() for base in type.mro(one)[1:]}
    found = {
        name: one
        for name, one in classes.items()
        if one not in bases and not getattr(one, "__abstractmethods__", ()) and not getattr(one, "_is_protocol", False)
    }
    return found or classes


def _method_of(kind: type, wanted: str) -> str | None:
    made = {key for base in type.mro(kind) if base is not object for key in vars(base)}
    return next((one for one in (wanted, *_METHODS) if one in made), None)


def _takes_context(kind: type) -> bool:
    """Return whether a class is an evaluator of pydantic-evals and defines `evaluate` itself."""
    bases = (base.__module__.partition(".")[0] for base in type.mro(kind)[1:])
    return "evaluate" in vars(kind) and "pydantic_evals" in bases


def _context_for(kind: type, own: dict[str, Any]) -> str:
    """Return the code that makes the object in which a class of pydantic-evals gets its row, with all that it reads."""
    codes = [*_codes_of(kind), *(code for one in own.values() if not isinstance(one, type) for code in _codes_of(one))]
    read = {name for code in codes for name in code.co_names}
    more = "".join(f", {name}={value}" for name, value in _FIELDS_OF_CONTEXT.items() if name in read)
    given = f"inputs=inputs, output=outputs, expected_output=inputs.get('correct_answer'){more}"
    return f"types.SimpleNamespace({given})"


def _is_ours(value: Any) -> bool:
    try:
        return bool(value.__module__ == "evaluator")
    except Exception:  # noqa: BLE001 - an attribute of a user's object may raise anything
        return False


def _no_helpers(own: dict[str, Any], names: list[str]) -> list[str]:
    """Return the functions that no other function uses; if there are none, all functions."""
    used = _used_names(own)
    return [one for one in names if one not in used] or names


def _used_names(own: dict[str, Any]) -> set[str]:
    """Return the names that functions and classes use, except their own names."""
    return {one for name, value in own.items() for code in _codes_of(value) for one in code.co_names if one != name}


def _codes_of(value: Any) -> list[Any]:
    """Return the code objects of a function or of a class's methods, and of all functions inside them."""
    parts = list(vars(value).values()) if isinstance(value, type) else [value]
    left = [one for part in parts if (one := getattr(part, "__code__", None)) is not None]
    found = []
    while left:
        one = left.pop()
        found.append(one)
        left.extend(part for part in one.co_consts if hasattr(part, "co_consts"))
    return found


def _on_judges() -> str | None:
    # imported here, because `later` imports a part of `dialects`, which imports this module
    from evaluator_runner import later

    for platform, modules in JUDGES.items():
        if judges := [one for one in later.lacking_of(*modules) if one[:1].isupper() or "graded" in one]:
            ask, them = ("asks", "it") if len(judges) == 1 else ("ask", "them")
            return (
                f"{', '.join(judges[:10])} of {platform} {ask} a model, so the host does not call {them}: write a "
                "function that asks a model granted in `models`, or use one of the host's judges (docs/models.md)"
            )
    return None


def _hint(wanted: str, functions: list[str], classes: dict[str, Any], own: dict[str, Any]) -> str:
    import difflib

    if (hint := _on_judges()) is not None:
        return hint
    spelled = {name.lower(): name for name in functions if not name.startswith("_")}
    names = ["evaluate", "main"] if wanted == "evaluate" else [wanted]
    least = 0.75 if wanted == "evaluate" else 0.6  # a stricter limit than usual, because many names begin with "eval"
    close = [spelled[match] for name in names for match in difflib.get_close_matches(name.lower(), spelled, 1, least)]
    if close:
        return f"did you mean `{close[0]}`? Rename it, or name it in `settings.entry`; otherwise {_EXPECTED}"
    if (built := _builder(own, functions)) is not None:
        hint = f"`{built}` is a string that contains a function, which is not run: paste that function as the code"
        return f"{hint}; or name `{built}` in `settings.entry`, if it is the evaluator" if functions else hint
    public = _no_helpers(own, [one for one in functions if not one.startswith("_")] or functions)
    scoring = {name: one for name, one in classes.items() if _method_of(one, wanted)}
    if (judge := next((name for name, one in classes.items() if _takes_context(one)), None)) is not None:
        call = f"{_made(judge, classes[judge])}.evaluate({_context_for(classes[judge], own)})"
        return (
            f"`{judge}` expects an object of pydantic-evals with the row, which the host does not make: "
            f"add `def evaluate(inputs, outputs, trace): return {call}` and `import types`, "
            "and append `.value` to the call if it returns an EvaluationReason"
        )
    if (judge := next((name for name, one in classes.items() if _OF_RUNS in vars(one)), None)) is not None:
        known = signature.read(vars(classes[judge])[_OF_RUNS])
        given = "run" if known is not None and len(known.positional) == 2 else "run, example"
        line = f"def evaluate(run, example): return {judge}().{_OF_RUNS}({given})"
        return f"a RunEvaluator is not called: add `{line}` as the last line"
    if functions and scoring:
        hint = f"a class is not called: add `{_call_of(scoring, wanted)}` as the last line, with the arguments"
        return f"{hint} that the class takes; or name a function in `settings.entry`, for example {public[0]}"
    if len(public) > 1:
        named = [one for one in public if is_likely(one)]
        return f"name the evaluator in `settings.entry`, for example {(named or public)[0]}, or {_EXPECTED}"
    if functions:
        return f"name `{public[0]}` in `settings.entry`, or {_EXPECTED}"
    if classes and not functions:
        call = _call_of(classes, wanted)
        method = ", with the method that scores as METHOD" if ".METHOD(" in call else ""
        return f"a class is not called: add `{call}` as the last line{method}"
    return f'{_EXPECTED}; code under `if __name__ == "__main__"` does not run'
