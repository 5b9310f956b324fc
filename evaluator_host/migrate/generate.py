"""Generates the rows on which a migration is proved, if the caller gives none.

Values have the types that the code seems to expect. The same code always gets the same rows.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Final

from evaluator_host.types.evaluator import Json, Row

COUNT: Final = 48
_SEED: Final = 20_240_601
_OUTPUTS: Final = ("completion", "output", "outputs")
_WITH_OLDER: Final = 8  # every eighth row also has columns named like outputs, but with the outputs of another row
_KEPT: Final = 24  # maximum number of literals from the code that generated rows use
_WORDS: Final = (
    *("Paris", "paris", " Paris \n", "The capital of France is Paris.", "London", "", "Zürich", "yes", "no", "true"),
    *("a b c", "A B C", "x" * 300, "42", "42.0", "3.14", "-1", "0", "1e3", "not a number", "a,b;c"),
)
_NUMBERS: Final = (0, 1, -1, 2, 0.5, 1.0, 42, 3.14, 100, -0.25, 10**6)
_TEXT: Final = r"\.\s*(?:lower|upper|strip|split|replace|startswith|endswith|casefold|title|encode|count|find|toLowerCase|toUpperCase|trim|includes|startsWith|endsWith|match|length)\b"  # noqa: E501
_NUMBER: Final = r"\s*(?:[-*/<>]=?|\*\*)\s*[\w(]"
_STRING: Final = re.compile(r"\"([^\"\\\n]{1,80})\"|'([^'\\\n]{1,80})'|`([^`\\\n$]{1,80})`")
_DIGITS: Final = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?![\w.])")


class _Values:
    """Generates values for one parameter, of the kinds that fit the parameter's use in the code."""

    def __init__(self, code: str, name: str, chance: random.Random) -> None:
        self._chance = chance
        escaped = rf"(?<![\w.$]){re.escape(name)}(?![\w$])"
        self._keys = _keys(code, escaped)
        self._kinds = [kind for kind, pattern in self._patterns(escaped) if re.search(pattern, code)]
        self._words = [*_WORDS, *_literals(code)]
        self._numbers = [*_NUMBERS, *_digits(code)]

    def one(self) -> Json:
        """Return a random value, usually of a kind that the code expects, sometimes of any kind."""
        kinds = self._kinds if self._kinds and self._chance.random() < 0.85 else _ANY
        return self.of(self._chance.choice(kinds))

    def of(self, kind: str) -> Json:
        chance = self._chance
        match kind:
            case "text":
                return chance.choice(self._words)
            case "number":
                return chance.choice(self._numbers)
            case "number_text":
                return str(chance.choice(self._numbers))
            case "json":
                return json.dumps(self.of(chance.choice(("object", "object", "list", "number"))))
            case "object":
                keys = self._keys or ["answer", "score"]
                return {
                    key: self.of(chance.choice(("text", "number", "text"))) for key in keys if chance.random() < 0.9
                }
            case "list":
                return [self.of(chance.choice(("text", "number"))) for _ in range(chance.randrange(4))]
            case "bool":
                return chance.choice((True, False))
            case _:
                return None

    @staticmethod
    def _patterns(name: str) -> tuple[tuple[str, str], ...]:
        return (
            ("text", name + _TEXT + rf"|\b(?:str|String|len|re\.\w+)\([^()\n]*{name}"),
            ("json", rf"(?:json\.loads|JSON\.parse)\(\s*{name}"),
            ("number_text", rf"\b(?:float|int|Number|parseFloat|parseInt)\(\s*{name}"),
            ("number", rf"{name}{_NUMBER}|\b(?:abs|round|max|min)\([^()\n]*{name}"),
            ("object", rf"{name}\s*\[\s*['\"]|{name}\s*\.\s*(?:get|items|keys|values)\s*\("),
            ("list", rf"\bfor\s+\w+\s+(?:in|of)\s+{name}|{name}\s*\[\s*-?\d|{name}\s*\.\s*(?:map|filter|some|every)\("),
        )


_ANY: Final = ["text", "text", "text", "number", "number_text", "object", "list", "bool", "none"]


def generated_rows(
    code: str, parameters: tuple[str, ...], key: str, *, columns: tuple[str, ...] = (), whole_row: bool = False
) -> list[Row]:
    """Generate rows on which a legacy evaluator can run. The same code always gets the same rows.

    Args:
      code: The evaluator, which is searched for literals, columns and uses of the parameters.
      parameters: Names of the four parameters.
      key: Name of the input with the ground truth.
      columns: Names of further inputs that the code takes as parameters.
      whole_row: Whether the code expects the whole row in the fourth parameter.
    """
    chance = random.Random(_SEED)  # noqa: S311 - no secret; the same rows every time
    inputs, output, truth = parameters[1:4]
    outputs, truths = _Values(code, output, chance), _Values(code, truth, chance)
    read = [*columns, *(_columns(code, inputs) if inputs else ()), *(_columns(code, truth) if whole_row else ())]
    others = {name: _Values(code, name, chance) for name in dict.fromkeys(read) if name != key}
    rows: list[Row] = []
    for produced, wanted in _pairs(outputs, truths, chance):
        values = {name: column.one() for name, column in others.items()}
        is_with_older = rows and len(rows) % _WITH_OLDER == 0 and produced is not None
        older = dict.fromkeys(_OUTPUTS, rows[-1].outputs) if is_with_older else {}
        rows.append(Row(inputs={"question": "What is it?", **older, **values, key: wanted}, outputs=produced))
    return rows


def _pairs(outputs: _Values, truths: _Values, chance: random.Random) -> Iterator[tuple[Json, Json]]:
    """Yield pairs of output and ground truth: equal, nearly equal and different ones."""
    for index in range(COUNT):
        wanted = truths.one()
        match index % 4:
            case 0:
                yield wanted, wanted
            case 1 if isinstance(wanted, str):
                yield chance.choice((wanted.upper(), f" {wanted} ", f"I think {wanted}.", wanted[:-1])), wanted
            case 2:
                produced = outputs.one()
                yield produced, produced
            case _:
                yield outputs.one(), wanted


def _columns(code: str, inputs: str) -> list[str]:
    name = rf"(?<![\w.$]){re.escape(inputs)}(?![\w$])"
    return _keys(code, name)


def _keys(code: str, name: str) -> list[str]:
    found = re.findall(rf"{name}\s*(?:\?\.)?\[\s*['\"]([^'\"\n]{{1,80}})['\"]", code)
    found += re.findall(rf"{name}\s*\.\s*get\(\s*['\"]([^'\"\n]{{1,80}})['\"]", code)
    found += re.findall(rf"{name}\s*\??\.\s*([A-Za-z_$][\w$]{{0,79}})\b(?!\s*\()", code)
    return list(dict.fromkeys(found))[:_KEPT]


def _literals(code: str) -> list[str]:
    return list(dict.fromkeys(next(filter(None, groups)) for groups in _STRING.findall(code)))[:_KEPT]


def _digits(code: str) -> list[float | int]:
    found = [float(one) if "." in one else int(one) for one in _DIGITS.findall(code)]
    return [number + more for number in dict.fromkeys(found) for more in (0, 1, -1)][:_KEPT]
