"""Reads a row from options, and formats its result as a table."""

from typing import Any

from rich.text import Text

from evaluator_host.cli.console import facts
from evaluator_host.model.errors import InvalidRequest, Problem
from evaluator_host.model.evaluator import Row
from evaluator_host.model.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.model.outcome import ErrorCode, EvaluationError, EvaluationResult, Status


def parse_row(texts: dict[str, str | None]) -> Row:
    """Return the row of the options `--inputs --outputs --trace --variables --criteria`.

    Outputs that are not JSON are plain text; the others must be JSON objects.

    Raises:
      InvalidRequest: an option is not a JSON object.
    """
    fields: dict[str, Any] = {}
    problems = []
    for name, text in texts.items():
        if text is None:
            continue
        try:
            fields[name] = decode_json(text.encode("utf-8", "replace"))
        except InvalidJson as error:
            fields[name] = text
            if name != "outputs":
                problems.append(Problem(f"--{name}", str(error)))
                continue
        if name != "outputs" and not isinstance(fields[name], dict):
            problems.append(Problem(f"--{name}", f"must be a JSON object, not {type(fields[name]).__name__}"))
    if problems:
        raise InvalidRequest("the row is invalid", problems=tuple(problems))
    return Row(**fields)


def result_table(result: EvaluationResult) -> Text:
    """Return a result as a table, without the fields that are absent."""
    timing = result.timing_ms
    contract = (
        f"{result.evaluator.contract} ({result.evaluator.contract_source})" if result.evaluator.contract else None
    )
    others = {name: value for name, value in result.metrics.items() if name != "score"}
    return facts(
        (
            ("status", result.status),
            ("score", result.score),
            ("passed", result.passed),
            ("label", result.label),
            ("reason", result.reason),
            ("metrics", encode_json(others).decode() if others else None),
            ("warnings", "\n".join(f"{note.code}: {note.message}" for note in result.warnings)),
            ("error", error_text(result.error) if result.error else None),
            ("stdout", result.logs.stdout),
            ("stderr", result.logs.stderr),
            ("contract", contract),
            ("time", f"ran {timing.run:.1f} ms, load {timing.load:.1f} ms, total {timing.total:.1f} ms"),
        ),
    )


def error_text(error: EvaluationError) -> str:
    """Return an error as lines of text: what happened, where, what to do."""
    place = f" (line {error.line}{f', column {error.column}' if error.column else ''})" if error.line else ""
    return "\n".join(
        part for part in (f"{error.code}: {error.message}{place}", error.traceback, error.hint) if part is not None
    )


def exit_code(result: EvaluationResult) -> int:
    """Return 0 if the row did not fail, 1 if it did, 3 if the host is to blame."""
    if result.error is not None and result.error.code is ErrorCode.SANDBOX_LOST:
        return 3
    return 1 if result.status is Status.FAILED else 0
