"""An eval set that was run, as people read it."""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from evaluator_host.cli.console import table
from evaluator_host.dialects.uipath.eval_set import EvalItem
from evaluator_host.dialects.uipath.host.evaluation import EvalRun, overall, scores
from evaluator_host.dialects.uipath.host.evaluators import ProjectEvaluator

_FAILED: Final = "failed"
_WARNINGS: Final = 20


def eval_table(run: EvalRun) -> Text:
    """Return a line per test case, a column per evaluator, and their means."""
    found = scores(run)
    header = ("TEST CASE", *(one.name for one in run.evaluators))
    rows = [(item.name, *(_cell(run, item, one) for one in run.evaluators)) for item in run.eval_set.items]
    made = table(header, [*rows, ("mean", *(one.mean for one in found))])
    total = overall(found)
    failed = sum(one.failed for one in found)
    lost = f", {failed} of {sum(one.rows for one in found)} results failed and are in no mean" if failed else ""
    return made.append(f"\nscore {'none' if total is None else f'{total:.4g}'}{lost}")


def failures(run: EvalRun) -> Iterator[str]:
    """Yield why test cases and evaluators failed."""
    for item in run.eval_set.items:
        if (why := run.agent_error(item)) is not None:
            yield f"{item.name}: {why}"
            continue
        for one in run.asked(item):
            result = run.results.get((item.id, one.id))
            if result is not None and result.error is not None:
                at = f" (line {result.error.line})" if result.error.line is not None else ""
                hint = f"; {result.error.hint}" if result.error.hint else ""
                yield f"{item.name}, {one.name}: {result.error.code}: {result.error.message}{at}{hint}"


def warnings(run: EvalRun) -> list[str]:
    """Return what results warn of, each once: unknown keys of criteria, scores out of range."""
    found = [
        f"{one.name}: {note.message}"
        for one in run.evaluators
        for item in run.eval_set.items
        if (result := run.results.get((item.id, one.id))) is not None
        for note in result.warnings
    ]
    return list(dict.fromkeys(found))[:_WARNINGS]


def _cell(run: EvalRun, item: EvalItem, one: ProjectEvaluator) -> object:
    if one.id not in item.criteria:
        return None
    result = run.results.get((item.id, one.id))
    return _FAILED if result is None or result.error is not None else result.score
