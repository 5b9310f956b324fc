"""Runs plain functions such as `score(output, expected)` (dialect `function`), which get their arguments by name.

A parameter that is named like a column of the row gets that column; `roles.py` lists other names and what they get.
Functions that are called by position (`evaluate(inputs, outputs, trace)`) belong to another dialect, unless the names
of their parameters contradict their positions.
"""

from __future__ import annotations

import os
import sys

from evaluator_runner import binding, candidates, dialects, entry, jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.dialects.clients import CLIENTS
from evaluator_runner.failures import Failure
from evaluator_runner.methods import has_scoring_method, scoring_methods
from evaluator_runner.outline import Function, names_loaded, walk
from evaluator_runner.roles import (
    INPUT,
    OUTPUT,
    QUESTION,
    TRACE,
    TRUTH,
    WHOLE,
    is_by_name,
    lacks_only_output,
    lists_of,
    plain_name,
    role_of,
    roles_of,
    values_by_use,
    without_role,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "function"
WORDS = ("output", "response", "pred", "completion", "actual", "generat", "candidate", "hypothes", "answer", "expected", "_reward", "_score", "def reward", "def score", "def grade")  # fmt: skip  # noqa: E501
PREBOUND = False
_EXTRACTED = {"givenanswer", "studentanswer", "submittedanswer"}
"""Names of parameters for an answer that other code may have extracted from the output."""
_OF_FILES = ("path", "file", "filename", "dir", "folder")
"""Endings of parameter names that stand for the path of a file, which rows do not have."""
_SHOWN = 10
_SHORT = 2  # words of up to this many letters, such as `in` and `to`, do not tell which column is meant
_DATA_BASES = {
    "BaseModel", "Enum", "Exception", "Module", "NamedTuple", "Protocol", "Signature", "StrEnum", "TypedDict",
    "ValueError",
}  # fmt: skip
"""Base classes of classes that hold data, or that are the program to judge (a signature or module of DSPy)."""
_FIELDS = ("score", "value", "passed", "reason", "label", "name")
_PLAIN = (bool, int, float, str, list, tuple, type(None))
_PLAIN_TYPES = {"Any", "bool", "Dict", "dict", "float", "int", "List", "list", "Optional", "str"}
_NUMBERS = ("bool", "float", "int")
_STANDARD = {"argparse", "ast", "collections", "contextlib", "html", "io", "json", "logging", "string", "threading"}
"""Modules of the standard library; a class that inherits from a class in them is a helper."""
_YES_OR_NO = {"all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass"}
_TESTS_OF_TEXT = {"endswith", "fullmatch", "isalpha", "isascii", "isdigit", "isnumeric", "issubset", "startswith"}
_PREPARES = {
    "aggregate", "extract", "format", "get", "normalise", "normalize", "parse", "print", "read", "render", "save",
    "summarise", "summarize", "to", "write",
}  # fmt: skip
"""First words in the names of functions that prepare, write or add up the results of other functions."""
_decode = jsontext.decoder(binding.AttributeDict)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function whose parameter names show which column each parameter gets.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    if name is None:
        names = _chosen(outline) or _only(outline)
    else:
        names = [name] if name in outline.functions and is_by_name(outline.functions[name], named=True) else []
    if not names:
        methods = scoring_methods(outline) if name is None else []
        if not methods:
            return None
        if len(methods) == 1:
            what = f"`{methods[0].name}` is the only method that scores, and its parameters have known names"
        else:
            what = f"{', '.join(one.name for one in methods[:_SHOWN])} are the only methods of their classes that score"
        return dialects.BY_NAME, what
    found = outline.functions[names[0]]
    if not is_by_name(found, named=name is not None):
        return (
            dialects.BY_NAME,
            f"`{found.name}` is the only function that no other function uses, and its name says that it scores",
        )
    return (
        dialects.BY_NAME,
        f"`{found.name}` has parameters whose names say what they get: {', '.join(found.parameters)}",
    )


def _chosen(outline: Outline) -> list[str]:
    """Return the functions that may be the evaluator: `evaluate`, or those that no other function uses."""
    functions = outline.functions
    if "evaluate" in functions:
        found = functions["evaluate"]
        return ["evaluate"] if is_by_name(found) or lacks_only_output(found) else []
    if not outline.parsed or {"evaluate", "main"} & outline.binds - set(functions) or _has_other_entry(outline):
        return []
    possible = candidates.public(outline)
    if not possible and not outline.classes:
        possible = list(functions)  # if all functions are private, one of them may be the evaluator
    possible = [name for name in possible if name in functions and is_by_name(functions[name])]
    if not candidates.listed(outline, possible):
        possible = [name for name in possible if _takes_output(outline, name)] or possible
    of_many = {name for name in possible if functions[name].gives_list and lists_of(functions[name])}
    names = [name for name in possible if name not in of_many] or _of_one(outline)
    chosen = candidates.meant(outline, names)
    single = [name for name in names if not functions[name].gives_list]
    return [name for name in chosen if name in single] or candidates.meant(outline, single) or chosen


def _takes_output(outline: Outline, name: str) -> bool:
    """Return whether a function judges the output itself, not an answer that other code extracts from the output."""
    is_of_answer = any(plain_name(one) in _EXTRACTED for one in outline.functions[name].parameters)
    return not is_of_answer and not candidates.takes_apart(outline, name)


def _of_one(outline: Outline) -> list[str]:
    """Return the public functions that score a single output and are called only by functions that score many."""
    users: dict[str, list[str]] = {}
    for one in outline.functions.values():
        for name in names_loaded(one.node) - {one.name}:
            users.setdefault(name, []).append(one.name)
    return [
        name
        for name, function in outline.functions.items()
        if name[:1] != "_" and name in users and is_by_name(function) and not function.gives_list
        if all(outline.functions[one].gives_list or _repeats(outline.functions[one], name) for one in users[name])
    ]


def _repeats(function: Function, name: str) -> bool:
    """Return whether a function takes no output, and calls the function with this name only inside loops."""
    if OUTPUT in roles_of(function.parameters).values():
        return False
    looped = {
        id(call)
        for one in walk(function.node)
        if type(one).__name__ in ("For", "AsyncFor", "ListComp", "DictComp", "GeneratorExp")
        for call in walk(one)
        if type(call).__name__ == "Call" and getattr(call.func, "id", "") == name
    }
    called = [one for one in walk(function.node) if type(one).__name__ == "Name" and one.id == name]
    return 0 < len(looped) == len(called)


def _only(outline: Outline) -> list[str]:
    """Return a list with the only function that no other function calls.

    The list is empty if there are several such functions, or if the name of the only one does not say that it scores.
    """
    if not outline.parsed or {"evaluate", "main"} & outline.binds - {"main"} or _has_other_entry(outline):
        return []
    names = [name for name in candidates.public(outline) if name != "main" and not entry.makes(name)]
    scoring = [
        name for name in names if name in outline.functions and entry.SCORING.intersection(name.lower().split("_"))
    ]
    function = outline.functions[scoring[0]] if len(names) == 1 == len(scoring) else None
    if function is None or not function.required or function.gives_list:
        return []
    if all(one.endswith(_OF_FILES) for one in function.required):
        return []  # if all its parameters are files, it scores files that a program has written
    return [] if OUTPUT in roles_of(function.parameters).values() else [function.name]


def _of_equal_type(outline: Outline, names: list[str]) -> list[str]:
    """Return other public functions that have the return type of one of `names`. Types such as `float` do not count."""
    types = {one: _type_of(getattr(function.node, "returns", None)) for one, function in outline.functions.items()}
    wanted = {types.get(one) for one in names} - {(), None}
    return [
        one
        for one in candidates.public(outline)
        if one not in names and types.get(one) in wanted and outline.functions[one].required
    ]


def _beside(outline: Outline, names: list[str]) -> list[str]:
    """Return other public functions that may be evaluators for rows that lack what the functions in `names` need.

    Only a file with several evaluators has such functions, and only if the code has no list of evaluators.
    """
    if len(names) < 2 or candidates.listed(outline, names):
        return []
    others = [outline.functions[one] for one in candidates.public(outline) if one in outline.functions]
    return [
        one.name
        for one in others
        if one.name not in names and len(one.required) > 1 and without_role(one, set()) is None
        if _is_of_columns(one) and entry.is_likely(one.name)
    ]


def _type_of(annotation: Any) -> tuple[str, ...]:
    """Return the names in a return annotation; an empty tuple for a type that says little, such as `float`."""
    base = getattr(annotation, "value", annotation) if type(annotation).__name__ == "Subscript" else annotation
    if getattr(base, "id", None) in {None, *_PLAIN_TYPES}:
        return ()
    return tuple(str(getattr(one, "id", "") or getattr(one, "attr", "")) for one in walk(annotation))


def _has_other_entry(outline: Outline) -> bool:
    main = outline.functions.get("main")
    if main is not None and main.parameters and not main.is_program:
        return True
    used = candidates.helpers(outline)
    every = [base for name, one in outline.classes.items() if name not in used for base in one]
    bases = {base.rpartition(".")[2] for base in every if "." not in base or base.partition(".")[0] not in _STANDARD}
    own = [node for node in outline.tree.body if type(node).__name__ == "ClassDef" and node.name not in used]
    return bool(bases - _DATA_BASES) or any(map(has_scoring_method, own))


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the function. Each parameter gets the column for which its name stands.

    Raises:
      Failure: there is no such function, or there are several.
    """
    outline = candidates.outline_of(namespace)
    method = next((one for one in scoring_methods(outline) if one.name == name), None)
    if name is None:
        names = _chosen(outline) or _only(outline)
        same = _of_equal_type(outline, names)
        equal = same or _beside(outline, names)
        if len(names) + len(equal) > 1:
            failure = candidates.several(outline, [*names, *equal], "functions that may be the evaluator")
            if equal:
                failure.shown = f"those functions that find all their parameters in the row, among {failure.shown}"
                failure.uses, failure.instead = candidates.uses_of(outline, equal), not same
            raise failure
        methods = [] if names else scoring_methods(outline)
        if len(methods) > 1:
            raise candidates.several(outline, [one.name for one in methods], "methods that may be the evaluator")
        name = names[0] if names else "evaluate"
        method = methods[0] if methods else None
    if method is None:
        found = entry.find_function(namespace, name)
        function = outline.functions.get(name)
    else:
        found = entry.Entry(method.name, getattr(entry.object_of(namespace, method.of, config), method.function.name))
        function = method.function
    return _bound(found, function, outline)


def _bound(
    found: entry.Entry, function: Function | None, outline: Outline, *, only_columns: bool = False
) -> entry.Entry:
    """Complete an entry that calls a function. With `only_columns`, parameters with unknown names get no outputs."""
    found.decode = _decode
    bound = _Binding(found, function, outline, only_columns=only_columns)
    found.notes += [{"code": "coerced", "message": message} for message in bound.notes()]
    found.bind = lambda args: bound.arguments(args[0])
    scoring = bool(entry.SCORING.intersection(found.name.lower().rpartition(".")[2].split("_")))
    found.convert = lambda value: _all_converted(value, scoring=scoring)
    return found


def find_by_columns(namespace: dict[str, Any], name: str) -> entry.Entry:
    """Return an `Entry` that calls the function with this name for rows that have its parameters as columns."""
    found = entry.find_function(namespace, name)
    found.contract = CONTRACT
    outline = candidates.outline_of(namespace)
    return _bound(found, outline.functions.get(name), outline, only_columns=True)


def by_columns(namespace: dict[str, Any]) -> Failure | None:
    """Return a failure that lists the functions whose parameters are columns; rows with all these columns are scored.

    Only public functions are listed, and only if they return a number or have a name that says that they may score.
    Return None if there are no such functions.
    """
    outline = candidates.outline_of(namespace)
    if not outline.parsed or {"evaluate", "main"} & outline.binds - {"main"} or _has_other_entry(outline):
        return None
    if entry.has_scoring_class(namespace) or any(one not in namespace for one in outline.functions):
        return None  # a decorator from a missing package may have replaced the evaluator
    names = [one.name for one in outline.functions.values() if one.name in namespace and _is_of_columns(one)]
    if not names or (len(names) == 1 and not _may_score_alone(outline.functions[names[0]])):
        return None  # the host's usual error lists the functions
    failure = candidates.several(outline, names, "functions that may be the evaluator")
    failure.shown = f"those functions that find all their parameters in the row, among {failure.shown}"
    failure.uses = candidates.uses_of(outline, names)
    return failure


def _is_of_columns(function: Function) -> bool:
    """Return whether a function may be an evaluator for the rows whose columns have the names of its parameters."""
    if function.name[:1] == "_" or function.name == "main" or entry.makes(function.name) or not function.required:
        return False
    if function.name.partition("_")[0] in _PREPARES:
        return False
    if list(roles_of(function.parameters).values()).count(OUTPUT) > 1:
        return False
    if function.gives_list or function.gives_function or all(one.endswith(_OF_FILES) for one in function.required):
        return False
    returns = getattr(function.node, "returns", None)
    kind = getattr(returns, "id", "")
    if kind in _NUMBERS or (returns is None and _gives_verdict(function)):
        return True
    return entry.is_likely(function.name) and kind not in ("str", "list") and _gives_value(function)


def _may_score_alone(function: Function) -> bool:
    """Return whether the only possible function is an evaluator, and not a helper such as `is_blank(text)`."""
    return entry.is_likely(function.name) or TRUTH in roles_of(function.parameters).values()


def _gives_value(function: Function) -> bool:
    """Return whether a function has a `return` with a value that is not None."""
    returned = [one.value for one in walk(function.node) if type(one).__name__ == "Return" and one.value is not None]
    return any(getattr(one, "value", one) is not None for one in returned)


def _gives_verdict(function: Function) -> bool:
    """Return whether every `return` of a function has a value that can only be true or false."""
    returned = [one.value for one in walk(function.node) if type(one).__name__ == "Return"]
    return bool(returned) and all(map(_is_verdict, returned))


def _is_verdict(value: Any) -> bool:
    kind = type(value).__name__
    if kind == "BoolOp":
        return all(map(_is_verdict, value.values))
    if kind == "UnaryOp":
        return type(value.op).__name__ == "Not"
    if kind == "Call":
        return getattr(value.func, "id", "") in _YES_OR_NO or getattr(value.func, "attr", "") in _TESTS_OF_TEXT
    return kind == "Compare" or (kind == "Constant" and isinstance(value.value, bool))


class _Binding:
    """Gives a row's columns to the parameters of one function, whose code is examined only once."""

    def __init__(self, found: entry.Entry, function: Function | None, outline: Outline, *, only_columns: bool) -> None:
        known = found.signature
        self._found = found
        self._outline = outline
        self._function = function
        self._lists = {} if function is None else lists_of(function)
        by_use = set() if function is None else values_by_use(function)
        self._output = None
        if function is not None and not self._lists and not only_columns:
            self._output = without_role(function, by_use)
        self._unread = set() if function is None else function.unread
        self._names = [] if known is None else [*known.positional, *known.keyword_only]
        roles = {**roles_of(self._names), **self._lists}
        self._roles = {one: role for one, role in roles.items() if one not in by_use}
        self._optional: set[str] = set()
        if known is not None:
            with_default = [one for one, default in known.keyword_only.items() if default]
            self._optional = {*known.positional[known.required :], *with_default}

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the scores should know about the arguments."""
        if self._lists:
            names = " and ".join(f"`{one}`" for one in self._lists)
            yield (
                f"`{self._found.name}` goes through {names} in pairs, so the host puts each of these values of the "
                "row into a separate list"
            )
        if self._output is not None:
            yield f"if a row has no column `{self._output}`, this parameter gets the outputs"

    def arguments(self, row: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments for a row. A parameter that the code never reads needs no value.

        Raises:
          Failure: the row has no value for a parameter.
        """
        if self._found.signature is None:
            return [row.get("outputs")], {}
        columns, row = row["columns"], _completed(row, self._roles)
        values = {one: list(_values(one, self._roles.get(one), row, columns)) for one in self._names}
        named = {one: given[0] if given else None for one, given in values.items() if given or one in self._unread}
        lacking = [one for one in self._names if one not in named and one not in self._optional]
        if self._output is not None and lacking == [self._output] and self._may_be_output(row, columns):
            named[lacking.pop()] = row["outputs"]
        named.update({one: client() for one in lacking if (client := self._client(one)) is not None})
        lacking = [one for one in lacking if one not in named]
        if lacking:
            raise self._missing(lacking[0], columns)
        if not all(isinstance(named.get(one), list) for one in self._lists):
            named.update({one: [named[one]] for one in self._lists if one in named})
        return binding.bind(self._found, named)

    def _client(self, name: str) -> Any:
        """Return the class of a client of models that a parameter's annotation names; None if no model is granted."""
        module, _, kind = ("" if self._function is None else self._function.annotation_of(name)).rpartition(".")
        if kind not in CLIENTS.get(module, ()) or not os.environ.get(f"{module.upper()}_BASE_URL"):
            return None
        return getattr(sys.modules.get(module), kind, None)

    def _may_be_output(self, row: dict[str, Any], columns: dict[str, Any]) -> bool:
        """Return whether the parameter without a role may get the row's outputs.

        It may not if the row has no outputs, or if a column that is not a parameter shares a word with its name.
        """
        words = {word for word in (self._output or "").lower().split("_") if len(word) > _SHORT}
        others = [one.lower() for one in columns if one not in self._names]
        return "outputs" in row and not any(word in one for one in others for word in words)

    def _missing(self, name: str, columns: dict[str, Any]) -> Failure:
        kind = "" if self._function is None else self._function.annotation_of(name)
        missing = _missing(self._found.name, name, self._roles.get(name), columns, kind)
        public = [one for key, one in self._outline.functions.items() if key[:1] != "_" and one.required]
        able = [one.name for one in public if set(one.required) <= columns.keys()]
        if len(able) == 1 and able[0] != self._found.name:
            missing.hint = (
                f"the row has all parameters of `{able[0]}`: name it in `settings.entry`, if it is the evaluator"
            )
        elif OUTPUT not in self._roles.values() and "." not in self._found.name:
            missing.hint = (
                f"{missing.hint}; name `{self._found.name}` in `settings.entry` if it takes its arguments by position"
            )
        return missing


def _completed(row: dict[str, Any], roles: dict[str, str]) -> dict[str, Any]:
    """Return the row with a field `whole`: all its columns, and also the output if no parameter is for the output.

    If no parameter is for the ground truth, the ground truth stays among the inputs.
    """
    columns = row["columns"]
    inputs = {"inputs": columns} if "inputs" in row and TRUTH not in roles.values() else {}
    output = {}
    if "outputs" in row and OUTPUT not in roles.values():
        output = {"output": row["outputs"], "outputs": row["outputs"]}
    return {**row, **inputs, "whole": binding.AttributeDict({**output, **columns})}


def _values(name: str, role: str | None, row: dict[str, Any], columns: dict[str, Any]) -> Iterator[Any]:
    """Yield the values that a parameter may get, best first."""
    if role == OUTPUT and "outputs" in row:
        yield row["outputs"]
    if name in columns:
        yield columns[name]
    if role == TRUTH and "truth" in row:
        yield row["truth"]
    if role in (OUTPUT, TRUTH):
        same = [one for one in columns if role_of(one) == role]
        same = same or [one for one in columns if role == TRUTH and plain_name(one) == "answer"]
        yield from (columns[one] for one in same if len(same) == 1)
    if role == WHOLE:
        yield row["whole"]
    if "inputs" in row:
        yield from _of_inputs(name, role, row["inputs"], row["trace"])


def _of_inputs(name: str, role: str | None, inputs: dict[str, Any], trace: Any) -> Iterator[Any]:
    if role == QUESTION:
        usual = [one for one in inputs if role_of(one) in (QUESTION, INPUT)]
        if len(usual) == 1 or len(inputs) == 1:
            yield inputs[(usual or list(inputs))[0]]
    elif role == INPUT:
        yield inputs
    elif role == TRACE:
        yield trace
    elif name == "metadata":
        yield {}


def _missing(entry_name: str, name: str, role: str | None, columns: dict[str, Any], kind: str) -> Failure:
    have = ", ".join(f"`{one}`" for one in list(columns)[:50]) or "none"
    hint = "add the column to the row, rename the parameter, or give it a default"
    if role == TRUTH:
        hint = "send the expected answer as `correct_answer` in the inputs, or name its key in `correct_answer_key`"
    elif kind.rpartition(".")[2] in CLIENTS.get(kind.rpartition(".")[0], ()):
        hint = f"`{name}` asks a model: grant one in `models` (docs/models.md), and the host makes this client"
    elif "." in kind and kind.partition(".")[0] not in sys.stdlib_module_names:
        hint = f"a row cannot have an object such as `{kind}`: make it in the code, and make it the parameter's default"
    return Failure(
        "missing_input", f"`{entry_name}` needs `{name}`, which the row does not have; the row has: {have}", hint=hint
    )


def _all_converted(value: Any, *, scoring: bool) -> Any:
    """Convert a value, or each object in a list. `scoring` says whether the function's name says that it scores."""
    if type(value) not in (list, tuple) or not value or any(isinstance(one, _PLAIN) for one in value):
        return _converted(value, scoring=scoring)
    return [_converted(one, scoring=False) for one in value]


def _converted(value: Any, *, scoring: bool) -> Any:
    """Convert an object, or a pair of a score and a dict, to one dict with a `score`.

    A dict without `score` gets the number in `reward`, or in `value` if the dict also has a name.
    """
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        value = {one: getattr(value, one) for one in fields}
    elif hasattr(type(value), "model_dump"):
        value = value.model_dump()
    elif hasattr(type(value), "_asdict"):
        value = value._asdict()
    elif type(value) is tuple and len(value) == 2:
        value = _of_pair(value, scoring=scoring)
    elif type(value).__module__ not in ("builtins", "numpy") and any(hasattr(value, one) for one in _FIELDS):
        # objects such as `dspy.Prediction` keep their fields elsewhere, and list them as `keys()`
        own = vars(value)
        names = value.keys() if hasattr(type(value), "keys") and not any(one in own for one in _FIELDS) else [*own]
        value = {one: getattr(value, one) for one in names if not one.startswith("_")}
    if not isinstance(value, dict) or "score" in value:
        return value
    key = "reward" if "reward" in value else "value" if "name" in value or "key" in value else ""
    return {**value, "score": value[key]} if isinstance(value.get(key), bool | int | float) else value


def _of_pair(pair: tuple[Any, Any], *, scoring: bool) -> Any:
    """Merge `(score, details)` into one dict; if the function's name says that it scores, also `(details, score)`."""
    score, details = reversed(pair) if scoring and isinstance(pair[0], dict) else pair
    is_both = isinstance(score, bool | int | float) and isinstance(details, dict) and "score" not in details
    return {**details, "score": score} if is_both else pair
