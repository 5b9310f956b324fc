"""npm's own libraries decide whether a pin of an npm package is valid."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.scripts import read_script
from evaluator_host.engine.packages.tools import close_name
from evaluator_host.types.errors import InvalidPin
from evaluator_host.types.evaluator import Language
from tests.fuzz.bounds import scaled

JAVASCRIPT, TYPESCRIPT = Language.JAVASCRIPT, Language.TYPESCRIPT


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("lodash@4.17.21", "lodash@4.17.21"),
        (" lodash @ v4.17.21 ", "lodash@4.17.21"),
        ("lodash@=4.17.21", "lodash@4.17.21"),
        ("@types/node@20.1.0", "@types/node@20.1.0"),
        ("JSONStream@1.3.5", "JSONStream@1.3.5"),
        ("x@1.0.0-beta.1+build", "x@1.0.0-beta.1"),
        ({"name": "@types/node", "version": "20.1.0"}, "@types/node@20.1.0"),
    ],
)
def test_every_spelling_of_an_npm_pin_has_one_form(raw: Any, canonical: str) -> None:
    assert [pin.text for pin in parse([raw], JAVASCRIPT)] == [canonical]


REFUSED: list[tuple[Any, str, str | None]] = [
    ("lodash@^4.17.21", "range", "lodash@4.17.21"),
    ("lodash@~4.17", "range", None),
    ("lodash@4", "range", None),
    ("lodash@4.x", "range", None),
    ("lodash@>=1.2.3 <2", "range", "lodash@1.2.3"),
    ("lodash@1.0.0 || 2.0.0", "range", "lodash@1.0.0"),
    ("lodash@*", "range", None),
    ("lodash", "no version", None),
    ("@types/node", "no version", None),
    ("lodash@latest", "tag", None),
    ("lodash@1.2.3.4", "semantic version", None),
    ("lodash@01.2.3", "semantic version", None),
    ("lodash@npm:evil@1.0.0", "alias", None),
    ("npm:lodash@4.17.21", "alias", None),
    ("lodash@git+ssh://git@example.org/a.git", "git", None),
    ("github:a/b", "git", None),
    ("a/b", "git", None),
    ("lodash@a/b#main", "commits", None),
    ("lodash@https://example.org/x.tgz", "URL", None),
    ("lodash@file:../x", "path", None),
    ("./lodash", "path", None),
    ("~/lodash", "path", None),
    ("x.tgz", "path", None),
    ("--registry=https://example.org", "option", None),
    ("_x@1.0.0", "underscore", None),
    ("node_modules@1.0.0", "not a valid package name", None),
    ("__proto__@1.0.0", "underscore", None),
    ("lodash@4.17.21\nevil@1.0.0", "line break", None),
    ("lodash==4.17.21", "pip's syntax", "lodash@4.17.21"),
    ("lodash[x]==4.17.21", "pip's syntax", "lodash@4.17.21"),
    ("lodash>=4", "version range in pip's syntax", None),
    ({"name": "lodash", "version": "^4.17.21"}, "range", "lodash@4.17.21"),
    ({"name": "lodash", "version": "latest"}, "tag", None),
    ({"name": "lodash@1.0.0", "version": "2.0.0"}, "not a pin", None),
]


def test_a_string_that_is_not_an_exact_npm_pin_is_refused_by_name() -> None:
    """An error names each string that is not an exact npm pin. All strings are checked in one call, since each call
    starts a Node process for npm's libraries.
    """
    with pytest.raises(InvalidPin) as caught:
        parse(["zod@3.22.4", *(item for item, _, _ in REFUSED)], TYPESCRIPT)
    problems = {problem.field: problem for problem in caught.value.problems}
    assert len(problems) == len(caught.value.problems) == len(REFUSED)
    for number, (item, what, hint) in enumerate(REFUSED, start=1):
        problem = problems[f"packages[{number}]"]
        assert what in problem.message, item
        assert problem.hint == hint, item


PIECES = st.sampled_from(
    [
        "lodash",
        "@",
        "1.2.3",
        "^",
        "/",
        ".",
        "npm:",
        "#",
        "-",
        "git+",
        "://",
        " ",
        "\n",
        "=",
        "latest",
        "\ud800",
        "%",
        "__proto__",
    ]
)


@settings(max_examples=scaled(8))  # only few examples, because each example asks Node three times about many items
@given(st.lists(st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=6).map("".join)), min_size=15, max_size=60))
def test_anything_is_npm_pins_or_refused(raw: list[str]) -> None:
    bad: tuple[int, ...] = ()
    try:
        parse(raw, JAVASCRIPT)
    except InvalidPin as error:
        bad = tuple(int(found[1]) for p in error.problems if (found := re.fullmatch(r"packages\[(\d+)\]", p.field)))
    good = [item for number, item in enumerate(raw) if number not in bad]
    pins = parse(good, JAVASCRIPT)
    assert parse([pin.text for pin in pins], TYPESCRIPT) == tuple(replace(pin, language=TYPESCRIPT) for pin in pins)


def test_npm_specifiers_in_a_file_become_pins_and_nothing_moves() -> None:
    source = 'import _ from "npm:lodash@4.17.21/fp"; x()\nconst s = "npm:no@1"\nconst t = require(\'npm:@types/node@20.1.0\')\n'
    script = read_script(source, TYPESCRIPT)
    assert [pin.text for pin in script.pins] == ["@types/node@20.1.0", "lodash@4.17.21"]
    assert 'from "lodash/fp"' in script.source
    assert "require('@types/node'" in script.source
    assert '"npm:no@1"' in script.source
    assert len(script.source) == len(source)
    assert script.source.index("; x()") == source.index("; x()")


def test_a_range_in_a_specifier_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidPin) as caught:
        read_script('\n\nimport _ from "npm:lodash@^4.17.21"\n', JAVASCRIPT)
    assert "line 3" in caught.value.problems[0].message
    assert caught.value.problems[0].hint == "lodash@4.17.21"


@pytest.mark.parametrize(
    ("written", "language", "meant"),
    [
        ("lodahs", Language.JAVASCRIPT, "lodash"),
        ("expresss", Language.JAVASCRIPT, "express"),
        ("lodash.isequl", Language.JAVASCRIPT, "lodash.isequal"),
        ("recat", Language.JAVASCRIPT, "react"),  # not `recast`: two swapped letters count as closer
        ("preact", Language.JAVASCRIPT, None),
        ("scypy", Language.PYTHON, "scipy"),  # `scipy` is closer than `sympy`
        ("antropic", Language.PYTHON, "anthropic"),
        ("no-package-of-these", Language.PYTHON, None),
    ],
)
def test_a_misspelt_name_means_the_most_similar_known_package(
    written: str, language: Language, meant: str | None
) -> None:
    assert close_name(written, language) == meant
