"""Pins of Python packages must be exact versions, and have one canonical form; an error names each pin that is not."""

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluator_host.engine.packages.pin_parser import MAX_PINS, parse
from evaluator_host.engine.packages.pip.syntax import wanted
from evaluator_host.types.errors import InvalidPin
from evaluator_host.types.evaluator import Language
from tests.fuzz.bounds import scaled

PYTHON = Language.PYTHON


def texts(raw: Any) -> list[str]:
    return [pin.text for pin in parse(raw, PYTHON)]


def refused(item: Any) -> tuple[str, str | None]:
    with pytest.raises(InvalidPin) as caught:
        parse(["six==1.16.0", item], PYTHON)
    (problem,) = caught.value.problems
    assert problem.field == "packages[1]"
    return problem.message, problem.hint


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("numpy==2.1.0", "numpy==2.1.0"),
        ("  NumPy == 2.1 ", "numpy==2.1.0"),
        ("numpy==v2.1.0.0", "numpy==2.1.0"),
        ("Ruamel_Yaml.Clib==0.2.8", "ruamel-yaml-clib==0.2.8"),
        ("Requests[SOCKS, use_chardet]==2.32.3", "requests[socks,use-chardet]==2.32.3"),
        ("pytz==2024.1", "pytz==2024.1"),
        ("pytz==2024.1.0", "pytz==2024.1"),
        ("torch==2.5.0+CPU", "torch==2.5.0+cpu"),
        ("a==1!2.0RC1.post2.dev3", "a==1!2.0.0rc1.post2.dev3"),
        ({"name": "NumPy", "version": "2.1"}, "numpy==2.1.0"),
        ({"name": "requests[socks]", "version": "2.32.3"}, "requests[socks]==2.32.3"),
    ],
)
def test_every_spelling_of_an_exact_pin_has_one_form(raw: Any, canonical: str) -> None:
    assert texts([raw]) == [canonical]


def test_order_case_spelling_and_repetition_do_not_matter() -> None:
    one = parse(["numpy==2.1.0", "Requests[socks]==2.32.3"], PYTHON)
    other = parse(
        ["requests==2.32.3", "NUMPY == 2.1", {"name": "requests[SOCKS]", "version": "2.32.3"}, "numpy==2.1"], PYTHON
    )
    assert one == other


@pytest.mark.parametrize(
    ("item", "what", "hint"),
    [
        ("numpy>=2.1.0", "range", "numpy==2.1.0"),
        ("numpy~=2.1", "range", "numpy==2.1.0"),
        ("numpy>=2,<3", "range", "numpy==2.0.0"),
        ("numpy!=2", "range", None),
        ("numpy==2.*", "range", None),
        ("numpy===2.1.0", "===", "numpy==2.1.0"),
        ("numpy==2.1,==2.2", "range", None),
        ("numpy", "no version", None),
        ("numpy=2.1", "two equals", "numpy==2.1.0"),
        ("numpy latest", "latest", None),
        ("numpy==latest", "latest", None),
        ("numpy@latest", "latest", None),
        ("numpy 2.1", "not a pin", None),
        ("numpy @ https://example.org/numpy.whl", "URL", None),
        ("https://example.org/numpy-2.1.0.tar.gz", "URL", None),
        ("git+https://example.org/a/b@main", "URL", None),
        ("github:a/b", "URL", None),
        ("numpy @ file:///tmp/x", "URL", None),
        ("file:x", "URL", None),
        ("npm:lodash@4.17.21", "URL", None),
        ("./numpy", "path", None),
        ("../numpy==1", "path", None),
        ("/tmp/numpy-2.1.0-py3-none-any.whl", "path", None),
        ("numpy-2.1.0.tar.gz", "path", None),
        ("-r requirements.txt", "option", None),
        ("--index-url=https://example.org", "option", None),
        ("-e .", "option", None),
        ("numpy==2.1 --hash=sha256:00", "not a pin", None),
        ("numpy==2.1; python_version<'4'", "marker", "numpy==2.1.0"),
        ("numpy==2.1;", "marker", "numpy==2.1.0"),
        ("numpy==2.1 # fast", "comment", "numpy==2.1.0"),
        ("numpy==2.1\nevil==1", "line break", None),
        ("numpy==2.1\r--index-url=x", "line break", None),
        ("numpy==2.1\u2028evil==1", "line break", None),
        ("num\u200bpy==2.1", "invisible", None),
        ("numpy\x00==2.1", "invisible", None),
        ("\u0578umpy==2.1", "not a pin", None),
        ("", "empty", None),
        ("   ", "empty", None),
        ("a" * 400 + "==1", "longer", None),
        ("lodash@4.17.21", "npm's syntax", "lodash==4.17.21"),
        ("@scope/name@1.0.0", "npm package", None),
        (3, "a string, or an object", None),
        (None, "a string, or an object", None),
        (["numpy==2.1"], "a string, or an object", None),
        ({"name": "numpy"}, "exactly", None),
        ({"name": "numpy", "version": 2}, "exactly", None),
        ({"name": "numpy", "version": "2.1", "index": "x"}, "exactly", None),
        ({"name": "numpy", "version": ">=2"}, "range", "numpy==2.0.0"),
        ({"name": "-r", "version": "1"}, "option", None),
        ({"name": "numpy", "version": "1.0; x"}, "marker", "numpy==1.0.0"),
        ({"name": "numpy>=1,", "version": "1.0"}, "range", None),
    ],
)
def test_a_pin_that_is_not_exact_is_refused_by_name(item: Any, what: str, hint: str | None) -> None:
    message, found = refused(item)
    assert what in message
    assert found == hint


def test_every_bad_pin_is_named() -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["numpy>=2", "six==1.16.0", "-r x"], PYTHON)
    assert [problem.field for problem in caught.value.problems] == ["packages[0]", "packages[2]"]


def test_two_versions_of_one_package_name_both() -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["numpy==2.1.0", "six==1.16.0", "NumPy==2.0.0"], PYTHON)
    (problem,) = caught.value.problems
    assert problem.field == "packages[2]"
    assert "numpy==2.0.0" in problem.message
    assert "numpy==2.1.0" in problem.message


@pytest.mark.parametrize("raw", ["numpy==2.1.0", {"name": "numpy", "version": "2"}, None, 3])
def test_a_set_that_is_not_a_list_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidPin):
        parse(raw, PYTHON)


def test_a_set_has_at_most_so_many_pins() -> None:
    assert len(parse([f"p{number}==1.0.0" for number in range(MAX_PINS)], PYTHON)) == MAX_PINS
    with pytest.raises(InvalidPin):
        parse([f"p{number}==1.0.0" for number in range(MAX_PINS + 1)], PYTHON)


PIECES = st.sampled_from(
    [
        "numpy",
        "==",
        "2.1",
        "=",
        "@",
        "[x]",
        ";",
        "#",
        "-",
        "git+",
        "://",
        " ",
        "\n",
        ">=",
        "~",
        ".*",
        "latest",
        "!",
        "\ud800",
        ",",
        "$",
    ]
)
ITEMS = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=8).map("".join),
    st.dictionaries(st.sampled_from(["name", "version", "x"]), st.text(max_size=10), max_size=3),
    st.none() | st.integers() | st.binary(max_size=5) | st.lists(st.text(max_size=3), max_size=2),
)


@settings(max_examples=scaled(400))
@given(st.lists(ITEMS, max_size=4))
@example(["a[" + "," * 200 + "]==1"])
@example(["a==" + "9" * 280])
@example([{"name": {}, "version": []}])
def test_anything_is_pins_or_refused_and_pins_are_a_fixed_point(raw: list[Any]) -> None:
    try:
        pins = parse(raw, PYTHON)
    except InvalidPin as error:
        problems = error.problems
    else:
        assert parse([pin.text for pin in reversed(pins)], PYTHON) == pins
        for pin in pins:
            assert re.fullmatch(r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[0-9a-z.!+]+", pin.text)
        return
    assert problems
    for problem in problems:
        assert problem.hint is None or texts([problem.hint]) == [problem.hint]


@pytest.mark.parametrize("text", ["a- =1", "a[,]=1", "a[-]@ 1"])
def test_a_text_that_names_no_package_asks_for_none(text: str) -> None:
    assert wanted(text) is None
