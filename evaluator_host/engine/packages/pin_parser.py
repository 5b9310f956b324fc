"""Parses exact pins, and gives them one canonical form; refuses everything else.

With a pin that is not exact, the same evaluator could score differently tomorrow. With an option, URL or path in place
of a pin, a resolver could read files that the operator never offered.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from evaluator_host.engine.packages.lock import Pin, RawPin, Refusal
from evaluator_host.engine.packages.npm import syntax as npm_syntax
from evaluator_host.engine.packages.pip import syntax as pip_syntax
from evaluator_host.types.errors import InvalidPin, Problem
from evaluator_host.types.evaluator import Language

MAX_PINS: Final = 100
MAX_PIN_LENGTH: Final = 300  # maximum length of a pin; npm allows names of 214 characters, PyPI's longest has 80


def parse(raw: Sequence[RawPin], language: Language) -> tuple[Pin, ...]:
    """Return the pins that users wrote, parsed and sorted; order and spelling do not change the result.

    For JavaScript and TypeScript, npm's own libraries parse the pins, in one node process (60 ms) for each new set. So
    if an event loop is running, call this function in a thread.

    Args:
      raw: `name==version` with extras, `name@version`, `@scope/name@version`, or `{"name", "version"}`.
      language: Language of the evaluator: Python has pip pins, the other languages have npm pins.

    Raises:
      InvalidPin: it has one `Problem` for each bad pin; the field is `packages[i]`, the hint is the pin that was
        probably meant.
    """
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        raise InvalidPin(
            "`packages` must be a list of pins, such as ['numpy==2.1.0'].",
            problems=(Problem("packages", "must be a list of pins"),),
        )
    if len(raw) > MAX_PINS:
        problem = Problem("packages", f"{len(raw)} pins; at most {MAX_PINS} are allowed")
        raise InvalidPin("Too many packages.", problems=(problem,))
    texts = tuple(spelled(item, language) for item in raw)
    return _merged(_judged(texts, language), raw)


@lru_cache(maxsize=64)
def _judged(texts: tuple[str | Refusal, ...], language: Language) -> tuple[Pin | Refusal, ...]:
    clean = tuple(text for text in texts if isinstance(text, str))
    read = [pip_syntax.read(text) for text in clean] if language is Language.PYTHON else npm_syntax.read(clean)
    answers = (replace(one, language=language) if isinstance(one, Pin) else one for one in read)
    return tuple(text if isinstance(text, Refusal) else next(answers) for text in texts)


def spelled(item: object, language: Language) -> str | Refusal:
    """Return a pin as one line of text that is safe for a parser, or the reason why the pin is not safe."""
    if isinstance(item, Mapping):
        joined = _joined(item, language)
    elif isinstance(item, str):
        joined = item
    else:
        return Refusal("a pin must be a string, or an object with name and version")
    if isinstance(joined, Refusal):
        return joined
    if len(joined) > MAX_PIN_LENGTH:
        return Refusal(f"is longer than {MAX_PIN_LENGTH} characters")
    if any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for char in joined):
        return Refusal("has a line break or another invisible character; give one pin per item")
    stripped = joined.strip()
    return stripped or Refusal("is empty")


def _joined(item: Mapping[Any, Any], language: Language) -> str | Refusal:
    name, version = item.get("name"), item.get("version")
    if set(item) != {"name", "version"} or not isinstance(name, str) or not isinstance(version, str):
        return Refusal('an object must have exactly "name" and "version", both of them strings')
    if not name.strip() or not version.strip():
        return Refusal("name and version must not be empty")
    if language is not Language.PYTHON:
        return f"{name.strip()}@{version.strip()}"
    starts_with_operator = version.strip()[0] in "=<>!~^"
    return f"{name.strip()}{'' if starts_with_operator else '=='}{version.strip()}"


def _merged(answers: Sequence[Pin | Refusal], raw: Sequence[RawPin]) -> tuple[Pin, ...]:
    problems: list[Problem] = []
    pins: dict[str, Pin] = {}
    for index, answer in enumerate(answers):
        if isinstance(answer, Refusal):
            problems.append(Problem(f"packages[{index}]", _said(raw[index], answer), answer.hint))
            continue
        known = pins.setdefault(answer.name, answer)
        if known.version != answer.version:
            message = f"{answer.text} contradicts {known.text} in the same set: keep one of them"
            problems.append(Problem(f"packages[{index}]", message, known.text))
        elif known.extras != answer.extras:
            extras = tuple(sorted({*known.extras, *answer.extras}))
            pins[answer.name] = Pin(known.name, known.version, extras, known.language)
    if problems:
        raise InvalidPin(_summary(problems), problems=tuple(problems))
    return tuple(sorted(pins.values()))


def _said(item: RawPin, refusal: Refusal) -> str:
    return f"{str(item)[:80]!r}: {refusal.message}"


def _summary(problems: Sequence[Problem]) -> str:
    count = "1 package is" if len(problems) == 1 else f"{len(problems)} packages are"
    return f"{count} not pinned exactly: {problems[0].message}"
