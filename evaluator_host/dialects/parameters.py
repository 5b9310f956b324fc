"""Warns about parameters whose names say something else than what a contract passes by position."""

import re
from typing import Final

from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.evaluator import Evaluator, Language
from evaluator_host.model.outcome import Loaded, Note

_EXPECTED: Final = "the expected answer"
_OTHER: Final = "something else"
_WORDS: Final = {
    "inputs": "input inputs question query prompt",
    "outputs": "output outputs completion response prediction generated generation actual actualoutput modeloutput",
    _EXPECTED: "expected expectedoutput expectedoutputs expectedanswer expectedresponse target reference references "
    "referenceoutput referenceoutputs referenceanswer groundtruth groundtruths truth label labels gold goldanswer "
    "golden correctanswer correct answer answers ideal",
    "trace": "trace traces span spans",
    _OTHER: "metadata meta example run context ctx config criteria state turn event instance attachments tools params",
}
_MEANING: Final = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
_FITS: Final = {  # what else a name may be at such a place
    "inputs": frozenset({"params"}),
    "outputs": frozenset({"answer", "answers"}),
    "app_params": frozenset({"params", "config"}),
}
_MEANING_OF_PLACE: Final = {"output": "outputs", "correct_answer": _EXPECTED, "app_params": _OTHER}


def suspicious_parameters(evaluator: Evaluator, loaded: Loaded) -> tuple[Note, ...]:
    """Return a warning with a rewrite if names of the entry's parameters contradict what they are given.

    `def evaluate(input, output, expected)` is called with a trace as the third argument, and would score 0 for ever.
    """
    places = dialect_of(loaded.contract).positions
    wrong = [
        (name, place)
        for name, place in zip(loaded.parameters, places, strict=False)
        if name.isidentifier() and not name.startswith("_") and not _fits(name, place)
    ]
    if not wrong:
        return ()
    line = _line_of(loaded.entry, evaluator)
    where = f"line {line}: " if line else ""
    given = " and ".join(f"`{name}` is given {place}" for name, place in wrong)
    message = (
        f"{where}{given}: contract {loaded.contract} calls {loaded.entry}({', '.join(places)}) by position, whatever "
        f"the names are; write {_rewrite(evaluator, loaded, places, dict(wrong))}"
    )
    return (Note("suspicious_parameters", message),)


def _fits(name: str, place: str) -> bool:
    plain = name.lower().replace("_", "")
    meaning = _MEANING.get(plain)
    return meaning in (None, _MEANING_OF_PLACE.get(place, place)) or plain in _FITS.get(place, ())


def _rewrite(evaluator: Evaluator, loaded: Loaded, places: tuple[str, ...], wrong: dict[str, str]) -> str:
    names = [wrong.get(name, name) for name in loaded.parameters[: len(places)]]
    python = evaluator.language is Language.PYTHON
    head = f"{'def' if python else 'function'} {loaded.entry}({', '.join(names)})"
    source = names[places.index("inputs")]
    key = evaluator.settings.correct_answer_key
    taken = [
        f"{'' if python else 'const '}{name} = {source}[{key!r}]"
        for name in wrong
        if _MEANING[name.lower().replace("_", "")] == _EXPECTED
    ]
    return f"`{head}`" + (f" and `{'; '.join(taken)}` in it" if taken else "")


def _line_of(entry: str, evaluator: Evaluator) -> int | None:
    """Return the line of the pasted text where the entry is defined, from 1."""
    name = re.escape(entry)
    pattern = rf"^[^\n#/'\"]{{0,80}}(?:\b(?:def|function)[ \t*]{{1,9}}{name}\b|\b{name}[ \t]{{0,9}}[=:])"
    found = re.search(pattern, evaluator.code, re.MULTILINE)
    return None if found is None else evaluator.code.count("\n", 0, found.end()) + 1
