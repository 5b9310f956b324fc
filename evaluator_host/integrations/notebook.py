"""A cell magic for notebooks: `%load_ext evaluator_host.integrations.notebook`, then `%%evaluator NAME` above code."""

import argparse
import atexit
import shlex
from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from evaluator_host.client import Client
from evaluator_host.platform.datasets.mapping import Mapping, to_row
from evaluator_host.platform.evaluators.evaluator_files import evaluator_of
from evaluator_host.scale.sandbox_pool import SandboxPool
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluation import Batch
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.json_values import decode_json, encode_json, not_finite
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import rounded
from evaluator_host.types.outcome import Status

_SHOWN = 20


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the cell magic `%%evaluator` to a notebook; IPython calls it for `%load_ext`."""
    magic = _EvaluatorMagic(shell)
    atexit.register(magic.close)
    shell.register_magic_function(magic.run, "cell", "evaluator")  # type: ignore[arg-type] # its types know functions only


class Scores:
    """The scores of rows; a notebook shows them as a table.

    Attributes:
      batch: Every result, and the summary.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    @property
    def mean(self) -> float | None:
        """Return the mean score of the rows that scored; None if no row did."""
        return self.batch.summary.mean

    def _lines(self) -> Iterable[tuple[str, str, str]]:
        for number, one in enumerate(self.batch.results[:_SHOWN]):
            why = one.reason or (f"{one.error.code}: {one.error.message}" if one.error else "")
            yield str(number), str(one.score if one.status is Status.SCORED else one.status), why
        if (more := len(self.batch.results) - _SHOWN) > 0:
            yield "…", counted(more, "more row"), ""

    def _heads(self) -> list[str]:
        summary = self.batch.summary
        mean = "no score" if summary.mean is None else f"mean {rounded(summary.mean)}"
        head = f"{mean} over {summary.mean_rows} of {counted(summary.rows, 'row')}, {summary.failed} failed"
        return [head] if summary.doubt is None else [head, f"doubtful: {summary.doubt}"]

    def __repr__(self) -> str:
        return "\n".join([*self._heads(), *("  ".join(line).rstrip() for line in self._lines())])

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415

        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in self._lines())
        heads = "".join(f"<p>{escape(head)}</p>" for head in self._heads())
        return f"{heads}<table><tr><th>row</th><th>score</th><th>reason</th></tr>{rows}</table>"


class _EvaluatorMagic:
    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._pool: SandboxPool | None = None
        parser = argparse.ArgumentParser(prog="%%evaluator", exit_on_error=False, add_help=False)
        parser.add_argument(
            "name", help="the evaluator becomes a variable of this name, and its scores become NAME_scores"
        )
        parser.add_argument("--rows", help="name of a variable: rows as objects, or a DataFrame")
        parser.add_argument("--map", action="append", default=[], help="column for a field of the row: outputs=answer")
        parser.add_argument("--language", default="python")
        parser.add_argument("--package", action="append", help="an exact pin; repeatable")
        parser.add_argument("--threshold", type=float)
        parser.add_argument("--url", help="URL of a running host; without it, rows run in sandboxes of this process")
        self._parser = parser

    def run(self, line: str, cell: str) -> None:
        """Load the cell as an evaluator, and score rows with it.

        Usage: %%evaluator NAME [--rows VARIABLE] [--map FIELD=COLUMN] [--language L] [--package PIN] [--url URL]
        """
        try:
            given = self._parser.parse_args(shlex.split(line))
        except (argparse.ArgumentError, SystemExit) as error:
            raise UsageError(f"{self._parser.format_usage().strip()} ({error})") from None
        try:
            self._score(given, cell)
        except HostError as error:
            problems = "".join(f"\n  {one.field}: {one.message}" for one in error.problems)
            raise UsageError(f"{error.detail}{problems}") from None

    def _score(self, given: argparse.Namespace, code: str) -> None:
        evaluator = evaluator_of(code=code, language=given.language, packages=given.package, threshold=given.threshold)
        self._shell.user_ns[given.name] = evaluator
        if given.url is not None:
            with Client(given.url) as client:
                self._show(given, evaluator, client)
            return
        if self._pool is None:
            self._pool = SandboxPool()
            self._pool.open()
        self._show(given, evaluator, self._pool)

    def _show(self, given: argparse.Namespace, evaluator: Evaluator, engine: Any) -> None:
        if given.rows is None:
            report = engine.check(evaluator)
            for problem in report.problems:
                print(f"line {problem.line}: {problem.message}")
            if report.ok:
                print(f"{given.name} loads: {report.contract}({', '.join(report.parameters)})")
            return
        mapping = Mapping.parse(given.map)
        rows, outputs = self._rows(given.rows, mapping), "none" if mapping.without_outputs else None
        scores = Scores(engine.evaluate_batch(evaluator, rows, outputs=outputs))
        self._shell.user_ns[f"{given.name}_scores"] = scores
        display(scores)  # type: ignore[no-untyped-call]

    def _rows(self, name: str, mapping: Mapping) -> list[Row]:
        if name not in self._shell.user_ns:
            raise UsageError(f"there is no variable {name}: --rows must name a list of rows, or a DataFrame")
        rows: Any = self._shell.user_ns[name]
        records = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
        if (path := not_finite([None if isinstance(one, Row) else one for one in records])) is not None:
            print(f"{name} has NaN or infinities, for example at {path}, which JSON does not have: they become null")
        return [one if isinstance(one, Row) else to_row(decode_json(encode_json(one)), mapping) for one in records]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
