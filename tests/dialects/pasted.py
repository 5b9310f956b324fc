"""An evaluator as people paste it from a notebook, a repository or a page of documentation, and its score.

Unless a case has its own row, the row has the output "Paris", and "Paris" is also the expected answer.
"""

from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Final

from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row

PYTHON: Final = Language.PYTHON
JAVASCRIPT: Final = Language.JAVASCRIPT
TYPESCRIPT: Final = Language.TYPESCRIPT
ROW: Final = Row({"question": "Capital of France?", "correct_answer": "Paris"}, "Paris")


@dataclass(frozen=True, slots=True)
class Pasted:
    """A program and its result.

    Attributes:
      expected: The score, a label, `skipped`, or the code of the error.
      contains: Text that the error's message or hint must contain.
    """

    id: str
    code: str
    expected: Any = 1.0
    contract: str | None = None
    language: Language = PYTHON
    entry: str | None = None
    declared: Contract = Contract.AUTO
    row: Row = ROW
    contains: str = ""
    note: str = ""
    metrics: dict[str, float] | None = None
    packages: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def evaluator(self) -> Evaluator:
        settings = EvaluatorSettings(entry=self.entry, config=self.config)
        code = dedent(self.code).lstrip("\n")
        return Evaluator(
            code, language=self.language, contract=self.declared, settings=settings, packages=self.packages
        )
