"""Pasted text is cleaned: text around the code is removed, the code is not changed, and errors have the user's line
numbers and columns.
"""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.engine.service.preparer import sdk_needs
from evaluator_host.engine.service.source import CleanSource, clean
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError

PY, JS = Language.PYTHON, Language.JAVASCRIPT
PROGRAM = "def evaluate(inputs, outputs, trace):\n    if outputs:\n        return 1.0\n    return 0.0\n"


def codes(source: CleanSource) -> list[str]:
    return [note.code for note in source.notes]


@pytest.mark.parametrize(
    "code",
    [
        PROGRAM,
        "",
        "\n\n",
        "1",
        "1\n2\n3",
        "1 if True else 2",
        "evaluate = lambda i, o, t: 1\n",
        "const evaluate = () => `\n```\n`;\n",
        "#comment\n" + PROGRAM,
        'def evaluate(i, o, t):\n    """\n    ```\n    {"a": 1}\n    ```\n    """\n    return 1.0\n',
        '"""\n```\nexample\n```\n"""\n' + PROGRAM,
        "function evaluate(i, o, t) {\n  const s = `\n```js\nx\n```\n`;\n  return 1;\n}",
        "evaluate = make(\n'''\n```\nx\n```\n''')",
        "1 + 1\n3 + 3\n",
        "/*\n~~~\nx\n~~~\n*/\nexport default (i, o, t) => 1\n",
        "/*\n~~~\nx\n~~~\n*/\nglobalThis.evaluate = (i, o, t) => 1\n",
        "/*\n~~~\nx\n~~~\n*/\nwatch(scorer, 1);\n",
        "def evaluate(i, o, t):\n    return 'trailing blanks stay   \\\n   '   \n",
    ],
)
def test_a_program_is_left_alone(code: str) -> None:
    for language in Language:
        source = clean(code, language)
        assert source.code == code
        assert source.notes == ()
        assert source.to_user(2, 5) == (2, 5)


def test_line_ends_and_byte_order_mark() -> None:
    assert clean("\ufeff" + PROGRAM.replace("\n", "\r\n"), PY).code == PROGRAM
    assert clean(PROGRAM.replace("\n", "\r"), PY).code == PROGRAM
    source = clean("\ufeffa\r\nb\rc\n", PY)
    assert source.code == "a\nb\nc\n"
    assert source.to_user(1, 1) == (1, 2)
    assert source.to_user(2, 1) == (2, 1)


def test_no_break_and_zero_width_characters() -> None:
    pasted = "def evaluate(i, o, t):\u00a0\n\u00a0\u00a0\u200b\u00a0 return '\u00a0\u200b'\u200b\n\u00a0\u00a0\n"
    source = clean(pasted, PY)
    assert source.code == "def evaluate(i, o, t):\n    return '\u00a0\u200b'\n\n"
    assert source.to_user(2, 5) == (2, 6)


@pytest.mark.parametrize("info", ["", "python", " py title=x", "{.python}"])
@pytest.mark.parametrize("mark", ["```", "~~~", "````"])
def test_fence(info: str, mark: str) -> None:
    source = clean(f"\n{mark}{info}\n{PROGRAM}{mark}\n", PY)
    assert source.code == "\n\n" + PROGRAM + "\n"
    assert codes(source) == ["source_cleaned"]
    assert source.to_user(4, 5) == (4, 5)


def test_fence_with_prose_around_it() -> None:
    pasted = f"Here is the evaluator (it returns 1.0):\n\n```python\n{PROGRAM}```\n\nLet me know if it works!\n"
    source = clean(pasted, PY)
    assert source.code.strip() == PROGRAM.strip()
    assert source.code.split("\n")[3] == "def evaluate(inputs, outputs, trace):"
    assert source.code.count("\n") == pasted.count("\n")
    assert "text around" in source.notes[0].message


def test_two_fences_are_not_guessed_at() -> None:
    pasted = f"```python\n{PROGRAM}```\nor\n```python\n{PROGRAM}```\n"
    assert clean(pasted, PY).code == pasted


@pytest.mark.parametrize("pasted", [f"```python\n{PROGRAM}", f"{PROGRAM}```", f"```py\n{PROGRAM}  ```\n"])
def test_half_a_fence(pasted: str) -> None:
    assert clean(pasted, PY).code.strip() == PROGRAM.strip()


def test_indented_fence_is_dedented_for_python() -> None:
    pasted = "".join(f"   {line}\n" for line in f"```python\n{PROGRAM}```".split("\n"))
    source = clean(pasted, PY)
    assert source.code.strip() == PROGRAM.strip()
    assert source.to_user(2, 1) == (2, 4)


def test_fence_inside_a_docstring_of_a_fenced_program() -> None:
    program = 'def evaluate(i, o, t):\n    """\n    ```\n    x\n    ```\n    """\n    return 1\n'
    assert clean(f"```python\n{program}```", PY).code == f"\n{program}"


def numbered(program: str, pattern: str) -> str:
    return "\n".join(pattern.format(i, line) for i, line in enumerate(program.rstrip("\n").split("\n"), 1))


@pytest.mark.parametrize(
    "pattern",
    [
        "{} {}",
        "{}\t{}",
        "{}{}",
        "{:>3} {}",
        "{:>3}  {}",
        "{:>4} | {}",
        "{}| {}",
        "{}. {}",
        "{}: {}",
        "{}:{}",
        "{:2d})\t{}",
    ],
)
def test_gutter(pattern: str) -> None:
    program = "import re\n\n" + PROGRAM + "\n" + PROGRAM.replace("evaluate", "again") + "\n\nx = 1\n"
    source = clean(numbered(program, pattern), PY)
    assert [line.rstrip() for line in source.code.split("\n")] == program.rstrip("\n").split("\n")
    assert codes(source) == ["source_cleaned"]
    prefix = len(pattern.format(5, ""))
    assert source.to_user(5, 9) == (5, 9 + prefix)


def test_gutter_whose_single_blank_is_indentation() -> None:
    pasted = "1def main(\n2 completion: str,\n3) -> dict:\n4 ok = True\n5\n6 return {\n7 'score': 1.0,\n8 }"
    source = clean(pasted, PY)
    assert source.code == "def main(\n completion: str,\n) -> dict:\n ok = True\n\n return {\n 'score': 1.0,\n }"
    assert source.to_user(8, 2) == (8, 3)


def test_gutter_survives_lost_or_added_blank_lines() -> None:
    assert clean("1def f():\n\n2 return 1\n\n\n", PY).code == "def f():\n\n return 1\n\n\n"
    assert clean("1 x = 1\n\n3 y = 2", PY).code == "x = 1\n\ny = 2"


def test_gutter_inside_a_fence_and_of_one_line() -> None:
    assert clean("```\n1 def f():\n2   return 1\n```", PY).code == "\ndef f():\n  return 1\n"
    assert clean("1const evaluate = () => 1", JS).code == "const evaluate = () => 1"


@pytest.mark.parametrize("code", ["1 x = 1\n3 y = 2", "0 a\n1 b", "2 a\n3 b", "1 a\nb\n2 c", "1\n2\n3 + 4\n6"])
def test_numbers_that_are_not_a_gutter(code: str) -> None:
    assert clean(code, JS).code == code


def test_shebang_goes_and_its_line_stays() -> None:
    assert clean("#!/usr/bin/env node\nlet x;", JS).code == "\nlet x;"
    assert clean("\ufeff\n#!/usr/bin/env python3\n" + PROGRAM, PY).code == "\n\n" + PROGRAM


def test_indented_paste() -> None:
    pasted = "\n" + "".join(f"\t{line}\n" if line else "\n" for line in PROGRAM.split("\n"))
    source = clean(pasted, PY)
    assert source.code.strip() == PROGRAM.strip()
    assert source.to_user(3, 5) == (3, 6)
    assert clean(pasted, JS).code == pasted


def test_tabs_stay() -> None:
    code = "def evaluate(i, o, t):\n\tif o:\n\t\treturn 1\n\treturn 0\n"
    assert clean(code, PY).code == code


def test_partly_indented_paste_keeps_its_error() -> None:
    code = "  x = 1\ny = 2\n"
    assert clean(code, PY).code == code


def test_lone_surrogates_are_replaced() -> None:
    clean("x = '\ud800'", PY).code.encode()


def test_errors_are_moved_to_where_the_user_sees_them() -> None:
    source = clean("1 def f():\n2   return (", PY)
    error = EvaluationError(ErrorCode.SYNTAX_ERROR, "'(' was never closed", line=2, column=10)
    assert source.locate(error).column == 12
    assert source.locate(EvaluationError(ErrorCode.TIMEOUT, "late")) == EvaluationError(ErrorCode.TIMEOUT, "late")


PIECES = st.sampled_from(
    [
        "```",
        "~~~",
        "```py",
        "1",
        "2",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        "\ufeff",
        "\u00a0",
        "\u200b",
        "#!",
        "x",
        "def f():",
        "'''",
        "|",
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join), st.sampled_from(Language))
def test_lines_are_kept_and_positions_point_at_the_same_text(code: str, language: Language) -> None:
    source = clean(code, language)
    user = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    clean_lines = source.code.split("\n")
    assert len(clean_lines) == len(user)
    for number, line in enumerate(clean_lines, 1):
        text = line.strip()
        if text:
            _, column = source.to_user(number, len(line) - len(line.lstrip()) + 1)
            assert column is not None
            assert user[number - 1][column - 1 :].startswith(text.encode("utf-8", "replace").decode()[:1])


@given(st.text(max_size=200))
def test_cleaning_twice_changes_nothing_more_than_once(code: str) -> None:
    once = clean(code, JS).code
    assert clean(once, JS).code.count("\n") == once.count("\n")


def test_hostile_pastes_cost_one_pass() -> None:
    for hostile in (
        "~" * 300_000 + "`",
        " " * 300_000,
        "`" * 300_000 + "x`",
        "1" * 300_000,
        "\u00a0" * 300_000 + "x",
        "\n" * 100_000,
    ):
        assert clean(hostile, PY).code.count("\n") == hostile.count("\n")


_MANY = 1 << 20


@pytest.mark.parametrize(
    "code",
    [
        " " * _MANY + "x = 1\n" + PROGRAM,
        "1" + " " * _MANY + "x",
        "Here it is\n```\nx = 1\n```\ndef" + " " * _MANY,
        "import uipat " * (_MANY // 13) + "\n# uipath",
        "\n" * _MANY + "# uipath",
    ],
    ids=["indentation", "line number", "fence", "imports", "empty lines"],
)
def test_a_megabyte_of_anything_takes_one_pass(code: str) -> None:
    started = time.process_time()
    clean(code, PY)
    sdk_needs(Evaluator(code))
    assert time.process_time() - started < 2  # some of these texts once took minutes or hours, the first one 18 s
