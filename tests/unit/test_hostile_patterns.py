"""The host reads callers' code, messages and pins with patterns that take time in proportion to the length of the text,
so that no caller can block the event loop. A pattern whose time grows faster would need minutes for these texts.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest

from evaluator_host.engine.packages.npm.syntax import _foreign
from evaluator_host.engine.packages.pip.resolve import _NO_PACKAGE, _NO_VERSION, _NO_WHEEL
from evaluator_host.engine.packages.pip.syntax import read as read_pip_pin
from evaluator_host.engine.packages.suggest import imported_packages
from evaluator_host.engine.service.advice import advised
from evaluator_host.engine.service.missing_imports import missing_of
from evaluator_host.platform.evaluators.cases import read_expect
from evaluator_host.types.evaluator import Contract, Evaluator, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Failed
from evaluator_host.vendors.openai_grader.program import rendered
from evaluator_host.vendors.openai_grader.wire import _evaluator
from evaluator_host.vendors.promptfoo.config import _csv_assert

pytestmark = pytest.mark.timeout(60)

CHARS: Final = 1_000_000
CODE: Final = {Language.PYTHON: "def evaluate(inputs, outputs, trace):\n    return 1\n", Language.JAVASCRIPT: "x\n"}


def hint_on(message: str, language: Language) -> Any:
    return missing_of(Failed(EvaluationError(ErrorCode.USER_EXCEPTION, message)), Evaluator(CODE[language], language))


def advice_on(code: str) -> Any:
    error = EvaluationError(ErrorCode.SYNTAX_ERROR, "Unexpected identifier", line=1)
    return advised(error, Evaluator(code, Language.JAVASCRIPT), Contract.EVALUATE)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda text: hint_on(text, Language.PYTHON), "pip install " + "--a " * 400 + "!"),
        (lambda text: hint_on(text, Language.JAVASCRIPT), "npm install " + "--a " * 400 + "!"),
        (lambda text: imported_packages(Language.PYTHON, [text]), "except " + ":" * CHARS),
        (lambda text: imported_packages(Language.JAVASCRIPT, [text]), "/* import" + " " * CHARS + " */"),
        (advice_on, "class " + "a" * CHARS + "!"),
        (lambda text: _evaluator({"source": text}), "\n" * CHARS + "def grade(sample, item): return 1"),
        (_foreign, "a" + " " * CHARS + "!"),
        *[(pattern.search, text) for pattern in (_NO_PACKAGE, _NO_WHEEL) for text in ("a." * CHARS, "a[" * CHARS)],
        (_NO_WHEEL.search, "a==" * CHARS),
        (_NO_VERSION.search, "there is no version of a[" * (CHARS // 10)),
        (lambda text: rendered(text, {}), "{{" + " " * CHARS),
        (_csv_assert, "similar(" + "1" * CHARS + "!"),
        (read_pip_pin, "a" + " " * CHARS + "\n!"),
        (read_pip_pin, "a@" + " " * CHARS + "!"),
    ],
    ids=lambda value: value[:12].strip() if isinstance(value, str) else "",
)
def test_hostile_text_is_read_at_once(read: Callable[[str], Any], text: str) -> None:
    read(text)


@pytest.mark.parametrize("text", ["1" * 999 + "x", "1" * 400 + "." + "1" * 400 + "x", "1" * CHARS])
def test_an_expectation_that_is_a_hostile_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expect"):
        read_expect(text)
