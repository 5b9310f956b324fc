"""One table of evaluators, rows and results; tests run it in three languages on every backend."""

from tests.contract.cases import bindings, documented, entries, entries_js, returns, sources, traces, typescript
from tests.contract.cases.case import Case, Expected

__all__ = ["CASES", "Case", "Expected"]

CASES: list[Case] = [
    *returns.CASES,
    *entries.CASES,
    *entries_js.CASES,
    *sources.CASES,
    *bindings.CASES,
    *typescript.CASES,
    *documented.CASES,
    *traces.CASES,
]
