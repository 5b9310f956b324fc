"""Cases in which the pasted text is not yet a program, and the positions of errors in such text."""

from evaluator_host.types.evaluator import Language
from tests.contract.cases.case import Case, Expected, failed, javascript, python, scored

CLEANED = scored(1, warnings="source_cleaned")
PY = "def evaluate(inputs, outputs, trace):\n    score = 0\n\n    if outputs:\n        score = 1\n    return score\n"
JS = "function evaluate(inputs, outputs, trace) {\n  if (outputs) {\n    return 1;\n  }\n  return 0;\n}\n"
FAILING = "def evaluate(inputs, outputs, trace):\n    x = 1\n    return x / 0\n"


def numbered(program: str, pattern: str) -> str:
    return "\n".join(pattern.format(i, line) for i, line in enumerate(program.rstrip("\n").split("\n"), 1))


def paste(case_id: str, code: str, expected: Expected, language: Language = Language.PYTHON) -> Case:
    """Return a case whose code must reach the host unchanged."""
    return Case(id=f"source-{case_id}", language=language, code=code, expected=expected, outputs="x")


CASES = [
    paste("crlf-py", PY.replace("\n", "\r\n"), scored(1)),
    paste("crlf-js", JS.replace("\n", "\r\n"), scored(1), Language.JAVASCRIPT),
    paste("cr-py", PY.replace("\n", "\r"), scored(1)),
    paste("byte-order-mark-py", "\ufeff" + PY, scored(1)),
    paste("byte-order-mark-js", "\ufeff" + JS, scored(1), Language.JAVASCRIPT),
    paste("tabs", PY.replace("    ", "\t"), scored(1)),
    paste("leading-blank-lines", "\n\n  \n" + PY, scored(1)),
    paste("fence-py", f"```python\n{PY}```\n", CLEANED),
    paste("fence-tilde-js", f"~~~js\n{JS}~~~", CLEANED, Language.JAVASCRIPT),
    paste("fence-ts", f"```typescript\n{JS}```", CLEANED, Language.TYPESCRIPT),
    paste("fence-with-prose", f"Sure! This one checks the output:\n\n```python\n{PY}```\n\nHope it helps.\n", CLEANED),
    paste("fence-indented", "".join(f"    {line}\n" for line in f"```\n{PY}```".split("\n")), CLEANED),
    paste("gutter-blank", numbered(PY, "{} {}"), CLEANED),
    paste("gutter-none", numbered(PY, "{}{}"), CLEANED),
    paste("gutter-pipe", numbered(PY, "{:>3} | {}"), CLEANED),
    paste("gutter-tab-js", numbered(JS, "{}\t{}"), CLEANED, Language.JAVASCRIPT),
    paste("gutter-dot-ts", numbered(JS, "{}. {}"), CLEANED, Language.TYPESCRIPT),
    paste("shebang-py", "#!/usr/bin/env python3\n" + PY, scored(1)),
    paste("shebang-js", "#!/usr/bin/env node\n" + JS, scored(1), Language.JAVASCRIPT),
    paste("indented-py", "".join(f"    {line}\n" for line in PY.split("\n")), scored(1)),
    paste("no-break-blanks", PY.replace("    ", "\u00a0\u00a0 \u00a0").replace("score = 0", "score = 0\u00a0"), scored(1)),
    paste("zero-width", PY.replace("    ", "\u200b    "), scored(1)),
    paste("future-import", "from __future__ import annotations\n" + PY.replace("inputs,", "inputs: Undefined,"), scored(1)),
    paste("future-import-after-docstring", '"""Doc."""\nfrom __future__ import annotations\n' + PY, scored(1)),
    paste("no-final-line-end", PY.rstrip("\n"), scored(1)),
    paste("fence-inside-docstring", PY.replace("    score = 0", '    """\n    ```\n    1\n    ```\n    """\n    score = 0'), scored(1)),
    paste("error-line-in-fence", f"\n```python\n{FAILING}```", failed("user_exception", line=5, warnings="source_cleaned")),
    paste("error-line-in-gutter", numbered(FAILING, "{} {}"), failed("user_exception", line=3, warnings="source_cleaned")),
    paste("error-line-crlf", FAILING.replace("\n", "\r\n"), failed("user_exception", line=3)),
    python("non-ascii-source", "def evaluate(ä, ö, ü):\n    return {'score': 1, 'reason': 'größer ✓ 🎉'}", scored(1, reason="größer ✓ 🎉")),
    javascript("non-ascii-source", "const evaluate = (ä, ö, ü) => ({ score: 1, reason: 'größer ✓ 🎉' });", scored(1, reason="größer ✓ 🎉")),
]  # fmt: skip
