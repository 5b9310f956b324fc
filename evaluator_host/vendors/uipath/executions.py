"""Reads recorded executions of an agent, in this host's format or as UiPath's command line writes them to files.

This host's format is `{"id", "output", "spans" | "trace", "error", "seconds"}` per test case, as a JSON list, as lines
of JSON, or as an object by id.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.vendors.uipath.project import read_text

_FILE_BYTES: Final = 256 << 20
_SHOWN: Final = 20
_OUTPUTS: Final = ("output", "outputs", "agent_output", "agentOutput", "workload_output", "workloadOutput")
# names of spans that do not come from the agent
_OF_THE_EVALUATION: Final = ("evaluator", "evaluation", "eval_set_run")
_FORMS: Final = (
    'executions are {"id", "output", "spans"} for each test case: a list, lines of JSON, or an object by id; or the '
    "files that `uipath eval` writes with --verbose --output-file and with --trace-file"
)


@dataclass(frozen=True, slots=True)
class Execution:
    """A recorded run of an agent on one test case.

    Attributes:
      item: Id or name of the test case.
      output: The agent's output; `has_output` is false if no output was recorded.
      trace: `{"spans": [...]}`, OTLP/JSON or a trace in the documented shape; None if no trace was recorded.
      error: Why the agent failed; None if the agent did not fail.
      seconds: Duration of the run; None if unknown.
    """

    item: str
    output: Json = None
    has_output: bool = True
    trace: dict[str, Json] | None = None
    error: str | None = None
    seconds: float | None = None


def read_executions(files: Iterable[Path]) -> list[Execution]:
    """Read the executions in several files; a test case's output and its spans may be in different files.

    Raises:
      InvalidRequest: a file has no executions, or two executions of one test case have an output.
    """
    return merged([one for file in files for one in parse_executions(_decoded(file), named=str(file))])


def merged(executions: Iterable[Execution]) -> list[Execution]:
    """Merge executions of the same test case into one.

    Raises:
      InvalidRequest: two executions of one test case have an output, or an error.
    """
    found: dict[str, Execution] = {}
    for one in executions:
        before = found.get(one.item)
        if before is None:
            found[one.item] = one
        elif before.has_output and one.has_output:
            raise InvalidRequest(f"there are two executions of the test case {one.item!r}; leave out one")
        else:
            whole, spans = (one, before) if one.has_output else (before, one)
            found[one.item] = replace(whole, trace=spans.trace or whole.trace)
    return list(found.values())


def parse_executions(value: Json, *, named: str = "executions") -> list[Execution]:
    """Read the executions in a decoded JSON value, in any supported format.

    Raises:
      InvalidRequest: the value has no executions.
    """
    if isinstance(value, dict):
        if isinstance(value.get("evaluationSetResults"), list):
            return _of_output_file(value["evaluationSetResults"], named)
        if isinstance(value.get("executions"), list):
            return parse_executions(value["executions"], named=named)
        if value and all(isinstance(one, dict) for one in value.values()):
            return parse_executions([{"id": item, **one} for item, one in value.items()], named=named)
    if not isinstance(value, list) or not value:
        raise InvalidRequest(f"{named} contains no executions; {_FORMS}")
    if all(_is_span(one) for one in value):
        return _of_trace_file(value, named)
    problems: list[Problem] = []
    found = [_of_ours(one, f"$[{at}]", problems) for at, one in enumerate(value)]
    if problems:
        raise InvalidRequest(f"{named} is not valid; {_FORMS}", problems=tuple(problems[:_SHOWN]))
    return found


def _of_ours(entry: Json, path: str, problems: list[Problem]) -> Execution:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not entry["id"]:
        problems.append(Problem(path, "an execution must have the id of its test case"))
        return Execution("")
    name = next((one for one in _OUTPUTS if one in entry), None)
    error, spans, trace = entry.get("error"), entry.get("spans"), entry.get("trace")
    if name is None and error is None and spans is None and trace is None:
        problems.append(Problem(path, "an execution must have an output, spans or an error"))
    if spans is not None and not _are_spans(spans):
        problems.append(Problem(f"{path}.spans", "must be a list of objects"))
    if trace is not None and not isinstance(trace, dict):
        problems.append(Problem(f"{path}.trace", "must be an object"))
    seconds = entry.get("seconds")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        problems.append(Problem(f"{path}.seconds", "must be a number"))
        seconds = None
    return Execution(
        entry["id"],
        entry.get(name) if name is not None else None,
        has_output=name is not None or error is not None,
        trace={"spans": spans} if spans is not None else trace,
        error=None if error is None else _error_text(error),
        seconds=seconds,
    )


def _of_output_file(results: list[Any], named: str) -> list[Execution]:
    """Read a file that `uipath eval --verbose --output-file` wrote; without --verbose, the file has no outputs."""
    found = []
    for at, entry in enumerate(results):
        name = entry.get("evaluationName") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            problem = Problem(f"$.evaluationSetResults[{at}]", "evaluationName is missing")
            raise InvalidRequest(f"{named} is not valid", problems=(problem,))
        execution = entry.get("agentExecutionOutput")
        if isinstance(execution, dict):
            found.append(_of_output(name, execution))
    if not found:
        raise InvalidRequest(
            f"{named} has no outputs of the agent; write it with `uipath eval --verbose --output-file`"
        )
    return found


def _of_output(name: str, execution: dict[str, Any]) -> Execution:
    result = execution.get("result")
    result = result if isinstance(result, dict) else {}
    trace, seconds = execution.get("trace"), execution.get("execution_time")
    spans = trace.get("spans") if isinstance(trace, dict) else None
    error = result.get("error")
    if error is None and result.get("status") not in (None, "successful"):
        error = f"the run has the status {result['status']}"
    return Execution(
        name,
        result.get("output"),
        trace={"spans": spans} if _are_spans(spans) else None,
        error=None if error is None else _error_text(error),
        seconds=seconds if isinstance(seconds, int | float) else None,
    )


def _of_trace_file(spans: list[Any], named: str) -> list[Execution]:
    """Group the spans in a `--trace-file` by test case. Leave out the spans that the evaluation itself created."""
    by_item: dict[str, list[Json]] = {}
    for span in spans:
        attributes = span["attributes"] if isinstance(span["attributes"], dict) else {}
        item = attributes.get("execution.id")
        if isinstance(item, str) and not _is_of_the_evaluation(attributes):
            by_item.setdefault(item, []).append(span)
    if not by_item:
        raise InvalidRequest(f"{named} has spans, but none has the attribute execution.id, which names the test case")
    return [Execution(item, has_output=False, trace={"spans": found}) for item, found in by_item.items()]


def _is_of_the_evaluation(attributes: dict[str, Any]) -> bool:
    return attributes.get("span.type") == "evalOutput" or attributes.get("span_type") in _OF_THE_EVALUATION


def _is_span(entry: Json) -> bool:
    return isinstance(entry, dict) and "attributes" in entry and "name" in entry and "id" not in entry


def _are_spans(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _error_text(error: Json) -> str:
    if isinstance(error, dict):
        told = (error.get(name) for name in ("title", "message", "detail"))
        return ": ".join(text for text in told if isinstance(text, str) and text) or "no reason given"
    return str(error) or "no reason given"


def _decoded(file: Path) -> Json:
    """Decode a file: JSON as a whole, else line by line."""
    text = read_text(file, _FILE_BYTES, instead="; give the executions in several files")
    try:
        whole = decode_json(text)
    except InvalidJson as error:
        return _lines(file, text, error)
    return [whole] if file.suffix in (".jsonl", ".ndjson") and isinstance(whole, dict) else whole


def _lines(file: Path, text: bytes, whole: InvalidJson) -> list[Json]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(decode_json(line))
        except InvalidJson as error:
            why = whole if number == 1 else error
            raise InvalidRequest(f"{file}:{number}: {why}; {_FORMS}") from error
    return found
