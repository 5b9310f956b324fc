"""Gives any input to the parser of pins: it returns exact pins that can be parsed again, or an error that names the
item.
"""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator_host.engine.packages import pin_parser as pins
from evaluator_host.types.errors import InvalidPin
from evaluator_host.types.evaluator import Language
from tests.fuzz.bounds import JSON, TEXT, bounded

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True) | TEXT
RELEASES = st.from_regex(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(-[a-z]{1,3}\.[0-9])?", fullmatch=True)
EXACT = st.builds("{}@{}".format, st.from_regex(r"(@[a-z]{1,3}/)?[a-z][a-z0-9._-]{0,5}", fullmatch=True), RELEASES)
VERSIONS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc|\.post|\.dev|-)[0-9]{1,2})?", fullmatch=True) | TEXT
JOINTS = st.sampled_from(["==", "@", "===", "~=", ">=", " == ", "@@", "", ";", "[x]==", "==1,", "@npm:", "#"])
DANGERS = st.sampled_from(["-r x", "--index-url=http://x", "git+https://x", "https://x/y.whl", "./x", "/etc/passwd", "x==1\n-r y",
                           "x==1 ; python_version>'3'", "x==1 --hash=sha256:0", "@s/../x@1.0.0", "x@file:/etc", "x@latest", "x@^1.0.0"])  # fmt: skip
LINES = DANGERS | st.builds(lambda name, joint, version: f"{name}{joint}{version}", NAMES, JOINTS, VERSIONS)
ITEMS = LINES | st.fixed_dictionaries({"name": NAMES, "version": VERSIONS}) | JSON
PYTHON = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\[[a-z0-9,-]+\])?==[0-9!][A-Za-z0-9.!+]*")
NPM = re.compile(r"(@[a-z0-9~*'!()._-]+/)?[A-Za-z0-9~*'!()._-]+@[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+-]*")


def read(items: list[Any], language: Language) -> tuple[pins.Pin, ...] | None:
    try:
        return pins.parse(items, language)
    except InvalidPin as error:
        refused = error
    assert refused.problems
    assert all(re.fullmatch(r"packages(\[\d+\])?", problem.field) for problem in refused.problems)
    return None


@bounded(500)
@given(items=st.lists(ITEMS, max_size=4))
@example(items=["numpy==1.0\u2028-r x"])
@example(items=[{"name": "x", "version": "1", "more": 1}])
def test_python_pins_are_exact_and_read_back_as_themselves(items: list[Any]) -> None:
    found = read(items, Language.PYTHON)
    if found is not None:
        texts = [pin.text for pin in found]
        assert all(PYTHON.fullmatch(text) for text in texts), texts
        assert read(texts, Language.PYTHON) == found
        assert read(list(reversed(items)), Language.PYTHON) == found


@pytest.mark.long
@pytest.mark.timeout(120)
def test_npm_pins_are_exact_and_read_back_as_themselves() -> None:
    """Every npm pin that the parser accepts is exact, and can be parsed again with the same result. Each check of a
    list starts a Node process, so many items share a list.
    """
    asked: list[Any] = []

    @bounded(800)
    @given(item=ITEMS | EXACT)
    def gather(item: Any) -> None:
        asked.append(item)

    gather()
    exact = []
    for start in range(0, len(asked), pins.MAX_PINS):
        some = asked[start : start + pins.MAX_PINS]
        try:
            exact += [pin.text for pin in pins.parse(some, Language.JAVASCRIPT)]
        except InvalidPin as refused:
            bad = {int(problem.field[9:-1]) for problem in refused.problems}
            good = [item for index, item in enumerate(some) if index not in bad]
            exact += [pin.text for pin in pins.parse(good, Language.JAVASCRIPT)] if good else []
    assert len(exact) > 20
    assert [text for text in exact if not NPM.fullmatch(text)] == []
    few = sorted({text.rpartition("@")[0]: text for text in exact}.values())[: pins.MAX_PINS]
    assert sorted(pin.text for pin in pins.parse(few, Language.JAVASCRIPT)) == few
