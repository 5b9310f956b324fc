"""Finds the module specifiers of JavaScript and TypeScript: string literals after `from`, `import` and `require(`.

A scanner, no parser: it knows comments, strings, template literals and regular expressions well enough never to look
inside them, and runs in time linear to the text. What it does not see stays as it was written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<comment>//[^\n\r\u2028\u2029]*|/\*.*?(?:\*/|\Z))
      | (?P<string>"(?:[^"\\\n\r]|\\(?:\r\n|.))*"|'(?:[^'\\\n\r]|\\(?:\r\n|.))*')
      | (?P<word>[\w$]+)
      | (?P<space>\s+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX: Final = re.compile(r"/(?:[^/\\\[\n\r]|\\.|\[(?:[^\]\\\n\r]|\\.)*\])+/[\w$]*")
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?P<end>`|\$\{)?", re.DOTALL)
_BEFORE_REGEX: Final = frozenset({
    "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "instanceof",
    "yield", "await",
})  # fmt: skip
_KEPT: Final = 5


@dataclass(frozen=True, slots=True)
class Specifier:
    """One module specifier: `source[start:end] == text`, the quotes outside."""

    start: int
    end: int
    text: str


def module_specifiers(source: str) -> Iterator[Specifier]:
    """Yield the specifiers of `import`, `export … from`, `import()`, `require()` and `require.resolve()`, in order."""
    before: list[str] = [""] * _KEPT  # the tokens before this one, comments and blanks left out
    braces: list[bool] = []  # of every open brace, whether it is a template's `${`
    place = 0
    while found := _TOKEN.match(source, place):
        kind, piece = found.lastgroup, found[0]
        place = found.end()
        if kind in {"comment", "space"}:
            continue
        if kind == "string" and _introduces(before):
            yield Specifier(found.start() + 1, found.end() - 1, piece[1:-1])
        elif piece == "`" or (piece == "}" and braces and braces.pop()):
            place = _template(source, place, braces)
        elif piece == "{":
            braces.append(False)
        elif piece == "/" and _may_be_regex(before[-1]) and (literal := _REGEX.match(source, found.start())):
            place = literal.end()
            piece = '""'  # for what follows, a value like any other
        before = [*before[1:], piece]


def _template(source: str, place: int, braces: list[bool]) -> int:
    """Skip the text of a template literal, up to its end or to the code of its next `${`."""
    found = _TEMPLATE.match(source, place)
    if found is None:
        return place
    if found["end"] == "${":
        braces.append(True)
    return found.end()


def _may_be_regex(previous: str) -> bool:
    """A slash divides after a value, and opens a regular expression after anything else."""
    if previous in _BEFORE_REGEX:
        return True
    return not (previous[-1:].isalnum() or previous[-1:] in {"_", "$", ")", "]", "}", '"', "'", "`"})


def _introduces(before: list[str]) -> bool:
    *_, third, second, last = before
    if last in {"from", "import"}:
        return second != "."
    if last != "(":
        return False
    if second in {"import", "require"}:
        return third not in {".", "function"}
    return [*before[-4:-1]] == ["require", ".", "resolve"] and before[-5] != "."
