"""`migrate` divides a file into slices: each contains a function that can be called, and everything that it uses."""

import pytest

from evaluator_host.migrate.slices import find_slices, listed_elsewhere

PYTHON = '''"""Scorers."""
from __future__ import annotations
import json, re
import gone
from lib.more import x

WORDS = {"a": 1}
WORDS["b"] = 2
print("loading", x)


def _clean(text: str) -> str:
    return re.sub(r"\\s+", " ", text)


@staticmethod
def exact(inputs, outputs, trace):
    return _clean(outputs) in WORDS


def judge(inputs, outputs, trace):
    return gone.ask(_clean(outputs))


class Length:
    def __call__(self, inputs, outputs, trace):
        return len(json.dumps(outputs))
'''

SCRIPT = """import { z } from 'gone';
import * as fs from 'node:fs';
type Row = { a: number };
const words: string[] = ['a'];
const clean = (text: string) => text.trim();
words.push('b');
export function exact(inputs: Row, outputs: string): boolean { return words.includes(clean(outputs)) }
export const judge = async (inputs: Row) => z.parse(inputs);
module.exports = { exact, judge };
"""


def test_each_entry_comes_with_what_it_names() -> None:
    found = {one["entry"]: one["code"] for one in find_slices(PYTHON, "python", 20)}
    assert list(found) == ["exact", "judge", "Length"]
    assert found["exact"] == (
        "from __future__ import annotations\nimport json, re\n\n"
        'WORDS = {"a": 1}\nWORDS["b"] = 2\n\n\n'
        'def _clean(text: str) -> str:\n    return re.sub(r"\\s+", " ", text)\n\n\n'
        "@staticmethod\ndef exact(inputs, outputs, trace):\n    return _clean(outputs) in WORDS\n"
    )
    assert found["Length"].startswith("from __future__ import annotations\nimport json, re\n\n\nclass Length:")


def test_scripts_are_sliced_too() -> None:
    found = {one["entry"]: one["code"] for one in find_slices(SCRIPT, "typescript", 20)}
    assert list(found) == ["exact", "judge"]
    assert "'gone'" not in found["exact"]
    assert "words.push('b');" in found["exact"]
    assert "const clean = " in found["exact"]
    assert "module.exports" not in found["exact"]


@pytest.mark.parametrize("code", ["def x(:", "", "import gone\n", "x = (" * 9000, "\0"])
@pytest.mark.parametrize("language", ["python", "javascript"])
def test_text_that_is_not_a_program_has_no_slices(code: str, language: str) -> None:
    assert find_slices(code, language, 20) == []


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (
            "python",
            (
                "from lib import Near\n\ndef exact(output):\n    return 1\n\n"
                "run(scores=[Near, exact, Near.partial(1), lambda output: 0])\nplot(scores=[1, 2], evaluators=[exact])\n"
            ),
        ),
        (
            "typescript",
            (
                "import { Near } from 'lib';\nfunction exact(output: string) { return 1 }\n"
                "run({ scores: [Near, exact, Near.partial(1), (output) => 0] });\nplot({ scores: [1, 2] });\n"
            ),
        ),
    ],
)
def test_evaluators_that_a_list_has_from_elsewhere_are_reported(language: str, code: str) -> None:
    assert listed_elsewhere(code, language)[:2] == ["Near", "Near.partial(1)"]
    assert listed_elsewhere(code, language)[2:] in (["lambda output: 0"], ["(output) => 0"])
    assert listed_elsewhere(code.replace("exact,", "").replace("[exact]", "[]"), language) == []


def test_only_so_many_are_returned() -> None:
    code = "import gone\n" + "".join(f"def f{n}(a, b, c): return {n}\n" for n in range(1000))
    assert len(find_slices(code, "python", 20)) == 20
