"""Evaluators whose outcome for row `n` depends only on `n`: they score, raise, print, exit, or exceed a limit."""

from dataclasses import dataclass, field
from typing import Any, Final

ROWS: Final = 32  # row numbers `n` are below this
DATA: Final = "row {n} " * 20


@dataclass(frozen=True, slots=True)
class Program:
    """One evaluator.

    Attributes:
      ends: The possible outcomes of rows without faults: `scored`, or the code of an error.
      packages: Exact versions of packages on the run's own index.
    """

    name: str
    code: str
    language: str = "python"
    ends: frozenset[str] = frozenset({"scored"})
    limits: dict[str, float] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    def evaluator(self, variant: str = "") -> dict[str, Any]:
        """Return the evaluator in the API's format. Different variants share no sandbox."""
        comment = "#" if self.language == "python" else "//"
        limits = {"timeout_s": 10.0, **self.limits}
        code = f"{self.code}\n{comment} {variant}\n" if variant else self.code
        return {"code": code, "language": self.language, "limits": limits, "packages": list(self.packages)}


def row(number: int) -> dict[str, Any]:
    """Return row `number`; rows repeat after `ROWS`."""
    n = number % ROWS
    return {"inputs": {"n": n, "text": DATA.format(n=n)}, "outputs": f"output {n}"}


def _python(
    name: str, body: str, *ends: str, first: str = "", packages: tuple[str, ...] = (), **limits: float
) -> Program:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    code = f"import os, time\n{first}\ndef evaluate(inputs, outputs, trace):\n    n = inputs['n']\n{lines}\n"
    return Program(name, code, "python", frozenset({"scored", *ends}), limits, packages)


def _javascript(
    name: str, body: str, *ends: str, first: str = "", language: str = "javascript", packages: tuple[str, ...] = (),
    **limits: float,
) -> Program:  # fmt: skip
    typed = "(inputs: any, outputs: any, trace: any): any" if language == "typescript" else "(inputs, outputs, trace)"
    code = f"{first}\nexport function evaluate{typed} {{\n  const n = inputs.n;\n{body}\n}}\n"
    return Program(name, code, language, frozenset({"scored", *ends}), limits, packages)


_RESULT = "return {'score': n / 100, 'n': n, 'length': len(inputs['text']), 'label': f'row {n}'}"
_JS_RESULT = "return {score: n / 100, n, length: inputs.text.length, label: `row ${n}`};"

STEADY: Final = (
    _python("python", _RESULT),
    _python("python that works", f"total = sum(i * i for i in range(20000 + n))\n{_RESULT[:-1]}, 'total': total}}"),
    _python("python that waits", f"time.sleep(0.02)\nprint('row', n)\n{_RESULT}"),
    _python("python that raises", f"if n % 5 == 0:\n    raise ValueError(f'row {{n}}')\n{_RESULT}", "user_exception"),
    _javascript("javascript", _JS_RESULT),
    _javascript(
        "javascript that works",
        "  let total = 0; for (let i = 0; i < 200000 + n; i++) total += i % 7;\n  console.log('row', n);\n"
        "  return {score: n / 100, n, total};",
    ),
    _javascript(
        "javascript that throws",
        f"  if (n % 5 === 0) throw new RangeError(`row ${{n}}`);\n  {_JS_RESULT}",
        "user_exception",
    ),
    _javascript("typescript", f"  const typed: number = n;\n  {_JS_RESULT}", language="typescript"),
)
"""Programs that use little time and memory."""

COSTLY: Final = (
    _python("python that loops", f"while n % 16 == 3:\n    pass\n{_RESULT}", "timeout", timeout_s=2.0),
    _python("python that takes memory", f"x = bytearray(1 << 40) if n % 8 == 1 else 0\n{_RESULT}", "memory_limit"),
    _python("python that exits", f"if n % 8 == 2:\n    os._exit(3)\n{_RESULT}", "crashed"),
    _python("python with a wrong result", f"if n % 4 == 1:\n    return float('nan')\n{_RESULT}", "non_finite"),
    _javascript("javascript that loops", f"  while (n % 16 === 3) {{}}\n  {_JS_RESULT}", "timeout", timeout_s=2.0),
)
"""Programs with rows that exceed a limit or end their process."""

PACKAGES: Final = 12


def packaged(number: int) -> Program:
    """Return a program with its own package, alternately a Python package and an npm package; `hosts.publish` offers
    them.
    """
    name = f"part{number % PACKAGES}"
    if number % 2:
        body = f"  return {{score: n / 100, part: {name}.value}};"
        first = f"import {name} from '{name}';"
        return _javascript(f"javascript with {name}", body, first=first, packages=(f"{name}@1.0.0",))
    body = f"return {{'score': n / 100, 'part': {name}.value}}"
    return _python(f"python with {name}", body, first=f"import {name}", packages=(f"{name}==1.0.0",))


PACKAGED: Final = tuple(packaged(number) for number in range(PACKAGES))
ALL: Final = {program.name: program for program in (*STEADY, *COSTLY, *PACKAGED)}
