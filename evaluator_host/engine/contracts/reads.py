"""Finds what an evaluator reads from a row.

These are pure functions over the facts that the runner found in the code when it was loaded.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.contracts.words import EXPECTED, meaning, plain
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.outcome import FunctionFacts, Loaded, ParameterFacts

BY_POSITION: Final = (Contract.EVALUATE, Contract.EVALUATE_V1)
"""Contracts with fixed positional arguments, which do not pass the caller's `variables`."""
_EVERY: Final = "*"
_OUTPUT_PLACES: Final = frozenset({"outputs", "output"})
_OF_THE_ROW: Final = frozenset({"example", "datapoint", "item", "dataset", "row"})
"""Parameters whose key `output` is the expected output of the data set."""
_TEXTS: Final = ("answer", "result", "text", "content")
"""Parameters that get the output in contract `function` if no name clearly means output; the first one counts."""
_MAIN_OUTPUTS: Final = frozenset({"completion", "output", "outputs"})
_PASS_COLUMNS: Final = frozenset({Contract.MAIN, Contract.FUNCTION})
_CHARS: Final = 80  # maximum length of a name in the facts about code; longer names are truncated
_EVALUATORS: Final = 256  # maximum number of evaluators whose results are cached

P = ParamSpec("P")
T = TypeVar("T")


def remembered(read: Callable[P, T]) -> Callable[P, T]:
    """Wrap `read` in a cache of its results for recent evaluators.

    The key is the `id()` of the `Loaded` object, because hashing the facts in it would take longer.
    """
    known: dict[tuple[object, ...], tuple[object, T]] = {}

    @wraps(read)
    def known_or_read(*args: P.args, **kwargs: P.kwargs) -> T:
        loaded, *rest = args
        key = (id(loaded), *rest, *kwargs.values())
        found = known.get(key)
        if found is None:  # the cache keeps `loaded` itself, so that no new object gets the same id
            if len(known) >= _EVALUATORS:
                known.clear()
            found = known[key] = loaded, read(*args, **kwargs)
        return found[1]

    return known_or_read


@remembered
def functions(loaded: Loaded) -> tuple[FunctionFacts, ...]:
    """Return facts about the functions that are called for a row, each with the parameters that get arguments.

    These may be fewer parameters than in the code: a bound method has no `self`, for example.
    """
    if loaded.entry == _EVERY or len(loaded.facts) != 1 or not loaded.parameters:
        return loaded.facts
    return (_bound(loaded.facts[0], loaded.parameters),)


@lru_cache(maxsize=256)
def _bound(facts: FunctionFacts, names: tuple[str, ...]) -> FunctionFacts:
    known = {one.name: one for one in facts.parameters}
    shown = tuple(known[name[:_CHARS]] for name in names if name[:_CHARS] in known)
    return FunctionFacts(facts.name, facts.line, rest=facts.rest, parameters=shown or facts.parameters)


@remembered
def fields_not_read(loaded: Loaded) -> frozenset[str]:
    """Return the fields of a row that the code certainly does not read."""
    return _fields_not_read(loaded.contract, functions(loaded))


@lru_cache(maxsize=256)
def _fields_not_read(contract: Contract, found: tuple[FunctionFacts, ...]) -> frozenset[str]:
    if contract is not Contract.EVALUATE or not found or any(one.rest for one in found):
        return frozenset()
    places = dialect_of(contract).positions
    named = (zip(places, one.parameters, strict=False) for one in found)
    return frozenset(places) - {place for pairs in named for place, one in pairs if one.read}


@dataclass(frozen=True, slots=True)
class OutputsRead:
    """How an evaluator reads the outputs of a row."""

    contract: Contract
    names: tuple[str, ...]  # names by which the code reads the outputs; empty if it reads none
    others: tuple[str, ...] = ()  # parameters that get something other than the outputs

    def lack(self, rows: Iterable[Row]) -> bool:
        """Return whether the code reads outputs although none of the rows has any."""
        if not self.names:
            return False
        return not any(has_outputs(row, self.contract, self.names) for row in rows)


@remembered
def outputs_read(loaded: Loaded) -> tuple[ParameterFacts, ...]:
    """Return the parameters that get the outputs of a row, except those that the code never reads."""
    return _outputs_read(loaded.contract, functions(loaded))


@remembered
def output_names(loaded: Loaded) -> tuple[str, ...]:
    """Return the names by which the code reads the outputs: parameters, or fields of the platform's own row."""
    return _output_names(loaded.contract, functions(loaded))


@lru_cache(maxsize=256)
def _outputs_read(contract: Contract, found: tuple[FunctionFacts, ...]) -> tuple[ParameterFacts, ...]:
    return tuple(one for function in found for one in _output_parameters(contract, function) if one.read)


@lru_cache(maxsize=256)
def _output_names(contract: Contract, found: tuple[FunctionFacts, ...]) -> tuple[str, ...]:
    parameters = [one.name for one in _outputs_read(contract, found)]
    return tuple(dict.fromkeys([*parameters, *(name for one in found for name in _fields_read(contract, one))]))


def _output_parameters(contract: Contract, function: FunctionFacts) -> Iterator[ParameterFacts]:
    if places := dialect_of(contract).positions:
        for place, one in zip(places, function.parameters, strict=False):
            if place in _OUTPUT_PLACES:
                yield one
        return
    if contract is Contract.MAIN:
        yield from (one for one in function.parameters if one.name in _MAIN_OUTPUTS)
        return
    named = [one for one in function.parameters if meaning(one.name) == "outputs"]
    if not named and contract is Contract.FUNCTION:
        texts = [one for text in _TEXTS for one in function.parameters if plain(one.name) == text]
        named = texts[:1]
    yield from named


def _fields_read(contract: Contract, function: FunctionFacts) -> list[str]:
    """Return the keys by which the code reads the outputs from an argument that also contains other values."""
    if contract in BY_POSITION:
        place = next(at for at, one in enumerate(dialect_of(contract).positions) if one in _OUTPUT_PLACES)
        return ["outputs"] if function.rest and place >= len(function.parameters) else []
    of = [one for one in function.parameters if plain(one.name) not in _OF_THE_ROW]
    if contract is Contract.MAIN:
        return [key for one in of[:1] for key in one.keys if key in _MAIN_OUTPUTS]
    return [key for one in of for key in one.keys if meaning(key) == "outputs"]


def has_outputs(row: Row, contract: Contract, names: Iterable[str]) -> bool:
    """Return whether a row has the outputs that code reads by these names (`OutputsRead.names`).

    A conversation counts as outputs. If the contract passes the caller's variables or columns to parameters, these
    count as outputs too.
    """
    if row.has_output:
        return True
    if contract in BY_POSITION:
        return False
    if row.variables is not None:
        return True
    return contract in _PASS_COLUMNS and any(row.inputs.get(name) is not None for name in names)


@remembered
def truths_read(loaded: Loaded, language: Language) -> tuple[str, ...]:
    """Return the row's keys from which the code reads the expected answer."""
    return tuple(one for one in keys_read(loaded, language) if meaning(one) == EXPECTED)


def keys_read(loaded: Loaded, language: Language) -> tuple[str, ...]:
    """Return the keys that the code reads from a row's inputs; for contract `main`, from the variables."""
    found = functions(loaded)
    parameters = found[0].parameters if found else ()
    if loaded.entry == _EVERY:
        return ()
    if loaded.contract is Contract.MAIN:
        whole = language is not Language.PYTHON and len(parameters) == 1
        return (parameters[0].keys if whole else ()) or loaded.parameters
    places = dialect_of(loaded.contract).positions
    named = dict(zip(places, parameters, strict=False))
    return named["inputs"].keys if "inputs" in named else ()


def inputs_read(evaluator: Evaluator, loaded: Loaded) -> tuple[str, ...]:
    """Return the row's columns that the code reads, except its outputs."""
    keys = [*keys_read(loaded, evaluator.language)]
    found = functions(loaded)
    if loaded.contract is Contract.EVALUATE_V1 and len(found) == 1 and len(found[0].parameters) > 3:
        keys += [evaluator.settings.correct_answer_key] if found[0].parameters[3].read else []
    return tuple(dict.fromkeys(keys))
