"""Warns about functions that always score 0 because their parameters or columns have misleading names."""

import re
from functools import lru_cache
from typing import Final, TypeAlias

from evaluator_host.engine.contracts.reads import BY_POSITION, has_outputs, output_names, outputs_read, truths_read
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.contracts.truth import empty_truth, missing_truth, reader_of
from evaluator_host.engine.contracts.words import EXPECTED, OTHER, meaning
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Language, Row
from evaluator_host.types.outcome import FunctionFacts, Loaded, Note
from evaluator_host.types.warnings import WARNINGS

_Named: TypeAlias = tuple[str, tuple[str, ...]]
"""The name of an entry function, and the names of its parameters."""
_CODE: Final = "suspicious_parameters"
_NOTHING: Final = {Language.PYTHON: "None", Language.JAVASCRIPT: "null", Language.TYPESCRIPT: "null"}
# for each argument, further parameter names that fit it, although these names usually mean something else
_FITS: Final = {
    "inputs": frozenset({"params"}),
    "outputs": frozenset({"answer", "answers", "solution"}),
    "app_params": frozenset({"params", "config", "options", "opts"}),
}
_MEANING_OF_PLACE: Final = {
    "output": "outputs",
    "correct_answer": EXPECTED,
    **dict.fromkeys(("app_params", "context", "sample", "item"), OTHER),
}
_WHOLE: Final = ({"inputs", "outputs"}, {"inputs", "output"}, {"outputs", "trace"}, {"inputs", "trace"})
"""Pairs of arguments that are never equal: code that compares them always scores 0."""
_MOST_CHARS: Final = 200_000
# if an answer is limited to this many tokens, the author wants it to be truncated, for example to a classifier's label
_SHORT_TOKENS: Final = 16


def suspicious_parameters(evaluator: Evaluator, loaded: Loaded) -> tuple[Note, ...]:
    """Return a warning and a correction if the names of the entry function's parameters do not match their arguments.

    For example, `def evaluate(input, output, expected)` gets a trace as `expected`, and so always scores 0.
    """
    if loaded.contract is Contract.JUDGE:  # the host wrote this function, so the user cannot rename its parameters
        return ()
    key, found = evaluator.settings.correct_answer_key, [(loaded.entry, loaded.parameters)]
    if loaded.entry == "*":
        heads = [one[:-1].split("(", 1) for one in loaded.parameters if one.endswith(")")]
        found = [(name, tuple(inner.split(", "))) for name, inner in heads]
    facts = {one.name: one for one in loaded.facts}
    only = loaded.facts[0] if len(loaded.facts) == 1 == len(found) else None
    told = [_suspicious(only or facts.get(one[0]), evaluator.language, key, loaded.contract, one) for one in found]
    return tuple(note for notes in told for note in notes)


def rewritten(evaluator: Evaluator, loaded: Loaded) -> str | None:
    """Rename each parameter after its argument, and assign the old names at the start of the function's body.

    Return the new code. Return None if all names are right, or if no argument has the value that an old name suggests.
    """
    code, python, places = evaluator.code, evaluator.language is Language.PYTHON, dialect_of(loaded.contract).positions
    wrong = _wrong(loaded.parameters, places)
    function = loaded.facts[0] if len(loaded.facts) == 1 else None
    head = None if function is None else _head_of(function, loaded.entry, code, python=python)
    if not wrong or function is None or head is None:
        return None
    read = [one.name for one in function.parameters if one.read and one.name in wrong.keys() - wrong.values()]
    sources = _taken(evaluator.language, evaluator.settings.correct_answer_key, loaded.parameters, places, wrong)
    if not sources.keys() >= set(read):
        return None
    renamed = re.sub(rf"\b({'|'.join(wrong)})\b", lambda name: wrong[name[0]], head[1])
    lines = [f"{'' if python else 'const '}{name} = {sources[name]}{'' if python else ';'}" for name in read]
    indent = re.match(r"[ \t]*(?:[#/][^\n]*)?\n(?:[ \t]*\n)*([ \t]+)", code[head.end() :])
    before, between = (f"\n{indent[1]}", "") if indent else (" ", ";" if python else "")
    added = "".join(f"{before}{line}{between}" for line in lines)
    return code[: head.start(1)] + renamed + code[head.end(1) : head.end()] + added + code[head.end() :]


def row_notes(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    """Return warnings about a row: a truncated answer, missing outputs, or variables that are not passed."""
    notes = _row_notes(evaluator, loaded, row)
    return (*_cut_answer(row.response), *notes) if row.response else notes


def _cut_answer(response: dict[str, Json]) -> tuple[Note, ...]:
    choices, usage = response.get("choices"), response.get("usage")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or first.get("finish_reason") != "length":
        return ()
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens <= _SHORT_TOKENS:
        return ()
    kind = WARNINGS["answer_cut"]
    return (Note("answer_cut", kind.meaning, kind.remedy),)


def _row_notes(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    if row.variables and (unread := _unread_variables(loaded.contract, row.variables)):
        message = f"contract {loaded.contract} does not pass `variables`, so the code does not get {_quoted(unread)}"
        return (Note("unused_variables", message, "put them into `inputs`"),)
    unasked = None if row.outputs is not None else _unasked(loaded)
    if unasked and not has_outputs(row, loaded.contract, output_names(loaded)):
        nothing = _NOTHING[evaluator.language]
        message = f"the {reader_of(loaded)} reads `{unasked}`, which is {nothing} because the row has no outputs"
        return (Note("missing_outputs", message, "give `outputs`, or map the column that contains them"),)
    if empty := empty_truth(evaluator, loaded, row):
        return empty
    if loaded.contract not in (Contract.EVALUATE, Contract.MAIN):
        own = dialect_of(loaded.contract).row_notes
        return missing_truth(evaluator, loaded, row) or (() if own is None else own(evaluator, loaded, row))
    if loaded.entry == "*":
        return ()
    return _unfitting_output(loaded, row) or _missing_column(evaluator, loaded, row)


def _unread_variables(contract: Contract, given: dict[str, Json]) -> list[str]:
    passed = {"app_params"} if contract is Contract.EVALUATE_V1 else set()
    return [name for name in given if name not in passed] if contract in BY_POSITION else []


def _unasked(loaded: Loaded) -> str | None:
    """Return the parameter that gets the outputs, if code reads it without a check that outputs exist; else None."""
    read = [one for one in outputs_read(loaded) if _is_plain(one.name)]
    asked = loaded.entry != "*" and any(one.tested for one in read)
    return None if asked else next((one.name for one in read if not one.tested), None)


def _unfitting_output(loaded: Loaded, row: Row) -> tuple[Note, ...]:
    parameters = loaded.parameters
    destructured = loaded.contract is Contract.EVALUATE and len(parameters) > 1 and parameters[1][:1] == "{"
    if not destructured or isinstance(row.outputs, dict):
        return ()
    message = (
        f"`{parameters[1]}` takes properties of the output, but this output is of type {type(row.outputs).__name__}"
    )
    return (Note(_CODE, f"{message}, so they are undefined", "give an object as `outputs`, or do not destructure it"),)


def _missing_column(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    given = row.inputs if row.variables is None else row.variables
    wanted = truths_read(loaded, evaluator.language)
    if not wanted or not given.keys().isdisjoint(wanted):
        return ()
    there = [name for name in given if meaning(name) == EXPECTED or name == evaluator.settings.correct_answer_key]
    if not there:
        return ()
    python = evaluator.language is Language.PYTHON
    absent = "`.get` returns None or its default, and `[…]` raises KeyError" if python else "the code gets undefined"
    message = f"the code reads {_quoted(wanted)}, but the row has {_quoted(there)} instead, so {absent}"
    remedy = f"map the column: {wanted[0][:80]}={there[0][:80]}"
    return (Note("missing_column", message, f"{remedy}; or let the code read `{there[0][:80]}`"),)


def _quoted(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name[:80]}`" for name in names[:5])


@lru_cache(maxsize=256)
def _suspicious(
    function: FunctionFacts | None, language: Language, key: str, contract: Contract, named: _Named
) -> tuple[Note, ...]:
    entry, parameters = named
    places = dialect_of(contract).positions
    called = f"contract {contract} calls {entry}({', '.join(places)}) by position"
    where = f"line {function.line}: " if function is not None and function.line is not None else ""
    if wrong := _wrong(parameters, places):
        given = " and ".join(f"`{name}` gets `{place}`" for name, place in wrong.items())
        rewrite = _rewrite(language, key, entry, parameters, places, wrong)
        return (Note(_CODE, f"{where}{given}: {called}, whatever the names are", f"write {rewrite}"),)
    if places and (reason := _unread(function, parameters, places)):
        return (Note(_CODE, f"{where}{reason}: {called}", f"name the parameters {', '.join(places)}"),)
    return ()


def _wrong(parameters: tuple[str, ...], places: tuple[str, ...]) -> dict[str, str]:
    """Return the misleading names of parameters, each with the name of the argument that the parameter gets."""
    named = zip(parameters, places, strict=False)
    return {name: place for name, place in named if _is_plain(name) and not _fits(name, place, places)}


def _unread(function: FunctionFacts | None, parameters: tuple[str, ...], places: tuple[str, ...]) -> str | None:
    more = [name for name in parameters[len(places) :] if _is_plain(name) and meaning(name) == EXPECTED]
    if more:
        return f"`{more[0]}` never gets a value, and keeps its default"
    if not parameters:
        return "it has no parameters and reads `arguments`"
    if function is None:
        return (
            "its parameters cannot be read, because it is a bound or built-in function"
            if parameters[0] == "arg1"
            else None
        )
    plain = {name: place for name, place in zip(parameters, places, strict=False) if name.isidentifier()}
    for one in function.parameters:
        for other in one.compared:
            if {plain.get(one.name), plain.get(other)} in _WHOLE:
                got = f"`{one.name}` gets `{plain[one.name]}` and `{other}` gets `{plain[other]}`"
                return f"`{one.name}` is compared with `{other}`, but {got}"
    return None


def _is_plain(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_")


def _fits(name: str, place: str, places: tuple[str, ...]) -> bool:
    if name in places:
        return name == place
    meant = meaning(name)
    return meant in (None, _MEANING_OF_PLACE.get(place, place)) or name.lower().replace("_", "") in _FITS.get(place, ())


def _rewrite(
    language: Language,
    key: str,
    entry: str,
    parameters: tuple[str, ...],
    places: tuple[str, ...],
    wrong: dict[str, str],
) -> str:
    python = language is Language.PYTHON
    names = [wrong.get(name, name) for name in parameters[: len(places)]]
    head = f"{'def' if python else 'function'} {entry}({', '.join(names)})"
    every = _taken(language, key, parameters, places, wrong).items()
    taken = [f"{'' if python else 'const '}{name} = {source}" for name, source in every if meaning(name) == EXPECTED]
    return f"`{head}`" + (f" and `{'; '.join(taken)}` in it" if taken else "")


def _taken(
    language: Language, key: str, parameters: tuple[str, ...], places: tuple[str, ...], wrong: dict[str, str]
) -> dict[str, str]:
    """Map each misleading name to an expression for the value that it suggests. The expression uses the new names."""
    python = language is Language.PYTHON
    given = {place: wrong.get(name, name) for name, place in zip(parameters, places, strict=False)}
    keys = {"inputs": f"[{key!r}]", "context": '["vars"]["expected"]' if python else ".vars.expected"}
    place = next((one for one in keys if one in given), None)
    sources = {_MEANING_OF_PLACE.get(one, one): name for one, name in given.items()}
    if place is not None and EXPECTED not in sources:
        sources[EXPECTED] = f"{given[place]}{keys[place]}"
    meant = {name: meaning(name) for name in wrong if name not in given.values()}
    return {name: sources[what] for name, what in meant.items() if what in sources and what != OTHER}


def _head_of(function: FunctionFacts, entry: str, code: str, *, python: bool) -> re.Match[str] | None:
    lines = code.split("\n")
    if function.line is None or function.line > len(lines) or len(code) > _MOST_CHARS:
        return None
    at = lines[function.line - 1].find(entry)
    ends = r"\)[ \t]*(?:->[^:\n]*)?:" if python else r"\)[^(){\n]*\{"
    before = sum(len(line) + 1 for line in lines[: function.line - 1])
    return None if at < 0 else re.compile(rf"[^(\n]*\(((?:[^()]|\([^()]*\))*){ends}").match(code, before + at)
