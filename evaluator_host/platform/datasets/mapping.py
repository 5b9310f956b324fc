"""Maps a record of a file to a row. Each row field comes from a column, or from a template that uses columns.

A record with an object under `inputs` (or `variables`) already has the format of a row in the API. If another of its
columns has the expected answer, that column becomes one of the inputs. Any other record is flat: every column becomes
an input, `outputs` (or `output`) also becomes the outputs, and objects under `trace` and `criteria` and a list under
`messages` become the fields with these names. `outputs=none` in a mapping means that rows have no outputs. A record may
also have separate criteria for several evaluators; each evaluator then gets its own criteria.
"""

import json
import re
from collections.abc import Container, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluator_host.engine.contracts.otlp import with_spans
from evaluator_host.engine.contracts.row_documents import AGENT_ERROR, CRITERIA
from evaluator_host.engine.contracts.words import names_truth
from evaluator_host.platform.datasets.suggestion import nearest
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import ROW_FIELDS, Row
from evaluator_host.types.json_values import InvalidJson, decode_given, is_conversation, type_name, value_at
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Given, Note, Skipped

_MISSING: Final = object()  # marks a missing column; None would mean that the column contains null

_ALSO: Final = ("trace", "criteria")  # columns that become fields of the row, too, if they contain an object
_NULLABLE: Final = ("trace", "variables")
# fields that contain objects; in a file these may be JSON in a string
_OBJECTS: Final = ("inputs", "trace", "variables", "criteria")
_KEYED: Final = ("inputs", "variables")  # fields of which a mapping may set a single key
NO_OUTPUTS: Final = ("outputs", "none")  # mapping for rows without outputs, unless there is a column called `none`
_ALIASES: Final = {"correct_answer": "inputs.correct_answer"}
_MEANT: Final = (*ROW_FIELDS, "correct_answer")
_LONE: Final = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*\}\}")
_SHOWN = 8
_SHOWN_CHARS = 120
_FIELDS: Final = 1000
_CHARS: Final = 1 << 20
NEW_CHARS: Final = 64 << 10  # maximum length of a new job's mapping, because each list of jobs contains it


class BadRow(Exception):
    """A record that cannot become a row; the message says why."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """The source of each row field: `outputs=answer`, `correct_answer=expected`, `variables.target=meta.gold`.

    A source is a column (a dotted path reaches into objects) or a template: `outputs={{ first }} {{ last }}`.
    """

    sources: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, pairs: Iterable[str]) -> "Mapping":
        """Parse `FIELD=SOURCE` options from the user of this machine. Their templates are compiled in this process.

        Raises:
          InvalidRequest: an option does not have this form or sets an unknown field, or a template is not valid.
        """
        cut = [pair.partition("=") for pair in pairs]
        made = cls._checked([(field, source if equals else "") for field, equals, source in cut], named="--map")
        for field, template in made.templates:
            from evaluator_host.platform.datasets.template import BadTemplate, compiled  # noqa: PLC0415 - Jinja, which few need

            try:
                compiled(template)
            except BadTemplate as error:
                problem = Problem("--map", f"the template of {field} is not valid: {error}")
                raise InvalidRequest("the mapping is not valid", problems=(problem,)) from error
        return made

    @classmethod
    def from_sources(cls, sources: dict[str, str]) -> "Mapping":
        """Build a mapping from `{field: source}`; `rendering.require_templates` checks its templates.

        Raises:
          InvalidRequest: a field is unknown.
        """
        return cls._checked(list(sources.items()), named="mapping")

    @property
    def templates(self) -> list[tuple[str, str]]:
        """Return `(field, template)` for each field whose source is a template."""
        return [(field, source) for field, source in self.sources if is_template(source)]

    def without_templates(self) -> "Mapping":
        """Return the mapping without the fields that come from templates."""
        return Mapping(tuple(one for one in self.sources if not is_template(one[1])))

    @property
    def without_outputs(self) -> bool:
        """Return whether the mapping is for rows without outputs: `outputs=none`."""
        return NO_OUTPUTS in self.sources

    @classmethod
    def _checked(cls, sources: list[tuple[str, str]], *, named: str) -> "Mapping":
        if len(sources) > _FIELDS or sum(len(field) + len(source) for field, source in sources) > _CHARS:
            raise too_long(_CHARS)
        problems = [problem for field, source in sources for problem in _problems(field, source, named)]
        if problems:
            raise InvalidRequest("the mapping is not valid", problems=tuple(problems))
        return cls(tuple((_ALIASES.get(field, field), source) for field, source in sources))


def too_long(chars: int) -> InvalidRequest:
    """Return the error for a mapping with too many fields or more than `chars` characters."""
    return InvalidRequest(
        f"the mapping has over {_FIELDS:,} fields or {chars:,} characters; map fewer fields, or shorten them"
    )


def to_row(record: Any, mapping: Mapping, index: int | None = None) -> Row:
    """Return the row that a record maps to. `index` is the row's position in a data set.

    Raises:
      BadRow: the record is not an object, a column is missing, a template fails, or a field has the wrong type.
    """
    if not isinstance(record, dict):
        raise BadRow(f"a row must be an object, not {type_name(record)}")
    record = with_json(record)
    fields = _row_fields(record) if is_row(record) else _flat_fields(record)
    for target, source in mapping.sources:
        value = None if (target, source) == NO_OUTPUTS and source not in record else _value(record, source)
        field, _, key = target.partition(".")
        if key:
            held = fields.get(field)
            fields[field] = {**held, key: value} if isinstance(held, dict) else {key: value}
        else:
            fields[field] = value
    if mapping.sources:
        fields = with_json(fields)
    if isinstance(fields.get("trace"), list):
        fields["trace"] = with_spans(fields["trace"])
    for field in ("inputs", "trace", "variables"):
        if fields.get(field) is not None and not isinstance(fields[field], dict):
            raise BadRow(f"{field} must be an object, not {type_name(fields[field])}")
    if fields.get("messages") is not None and not is_conversation(fields["messages"]):
        raise BadRow("messages must be a list of objects with role and content")
    return Row(**fields, index=index)


def with_json(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record, with row fields such as `trace` decoded if they are strings with JSON.

    Raises:
      BadRow: a trace, variables or criteria begin like a JSON object, but are not valid JSON.
    """
    found = {name: _object(name, record[name]) for name in _OBJECTS if isinstance(record.get(name), str)}
    if isinstance(record.get("messages"), str) and is_conversation(messages := _json_of(record["messages"], "[")):
        found["messages"] = messages
    return {**record, **found} if found else record


def _object(name: str, text: str) -> Any:
    if name in _NULLABLE and text.strip() in ("", "null"):
        return None
    value = _json_of(text, ("{", "[") if name == "trace" else "{")
    if isinstance(value, BadRow):
        # other text, such as a list, may be meant as a string
        if name != "inputs" and text.lstrip().startswith("{"):
            raise BadRow(f"{name} is {value}")
        return text
    return value


def _json_of(text: str, begin: str | tuple[str, ...]) -> Any:
    if not text.lstrip().startswith(begin):
        return text
    try:
        return decode_given(text.encode("utf-8", "replace"))
    except InvalidJson as error:
        if not has_nan(text):
            return BadRow(str(error))
    try:
        return without_nan(text)
    except InvalidJson as error:
        return BadRow(str(error))


def has_nan(text: str) -> bool:
    """Return whether a string contains NaN or Infinity. Some programs write them, although JSON does not allow them."""
    return "NaN" in text or "Infinity" in text


def without_nan(text: str | bytes) -> Any:
    """Decode JSON that may contain NaN and Infinity. Both become null.

    Raises:
      InvalidJson: the text is not JSON even if NaN and Infinity are allowed.
    """
    try:
        finite = json.dumps(json.loads(text, parse_constant=lambda _: None))
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"not JSON: {error}") from error
    return decode_given(finite.encode())


def is_row(record: dict[str, Any]) -> bool:
    """Return whether a record already has the row format of the API."""
    return isinstance(record.get("inputs"), dict) or isinstance(record.get("variables"), dict)


def _row_fields(record: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {name: record[name] for name in ROW_FIELDS if name in record}
    if not isinstance(fields.get("inputs", {}), dict):
        raise BadRow(f"inputs must be an object, not {type_name(fields['inputs'])}")
    if "outputs" not in fields and "output" in record:
        fields["outputs"] = record["output"]
    inputs = fields.get("inputs", {})
    if fields.get("variables") is None and not any(map(names_truth, inputs)):
        fields["inputs"] = {**inputs, **{name: value for name, value in record.items() if names_truth(name)}}
    return fields


def _flat_fields(record: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"inputs": dict(record)}
    if (column := outputs_column(record)) is not None:
        fields["outputs"] = record[column]
    fields.update({name: record[name] for name in _ALSO if isinstance(record.get(name), dict)})
    if is_conversation(record.get("messages")):
        fields["messages"] = record["messages"]
    return fields


def outputs_column(columns: Container[str]) -> str | None:
    """Return the column from which rows get their outputs if the mapping does not name one.

    Return None if no column fits.
    """
    return next((name for name in ("outputs", "output") if name in columns), None)


def column_of(source: str) -> str:
    """Return the column in a template that only names a column (`{{ answer }}`). Return other sources unchanged."""
    lone = _LONE.fullmatch(source)
    return lone[1] if lone else source


def is_template(text: str) -> bool:
    """Return whether a source is a template, not the name of a column."""
    return "{{" in text or "{%" in text


def _value(record: dict[str, Any], source: str) -> Any:
    if not is_template(source):
        return _column(record, source)
    from evaluator_host.platform.datasets.template import BadTemplate, compiled  # noqa: PLC0415 - as above

    try:
        return compiled(source).render(record)
    except BadTemplate as error:
        raise BadRow(f"{source[:_SHOWN_CHARS]!r}: {error}") from error


def _column(record: dict[str, Any], column: str) -> Any:
    """Return a column by its name, or by a dotted path into nested objects."""
    value = value_at(record, column, _MISSING)
    if value is _MISSING:
        meant = nearest(column, record)
        guess = f"; did you mean {meant}?" if meant is not None else ""
        raise BadRow(
            f"there is no column {column!r}; the columns are: {', '.join(list(record)[:_SHOWN]) or 'none'}{guess}"
        )
    return value


def _problems(field: str, source: str, named: str) -> list[Problem]:
    where = named if named.startswith("-") else f"{named}.{field}"
    name, dot, key = _ALIASES.get(field, field).partition(".")
    if not (bool(key) and name in _KEYED if dot else name in ROW_FIELDS) or not source:
        hint = (
            f"FIELD must be one of {', '.join(ROW_FIELDS)}, correct_answer, "
            "inputs.NAME or variables.NAME, as in outputs=answer"
        )
        meant = nearest(name, _MEANT) if source else None
        if meant is not None and field != meant:
            hint = f"did you mean {meant}{dot}{key}={source}? {hint}"
        return [Problem(where, f"{field + '=' + source!r} is not FIELD=COLUMN", hint)]
    return []


def is_keyed(record: dict[str, Any]) -> bool:
    """Return whether a record has separate criteria for each evaluator."""
    return is_row(record) and isinstance(record.get(CRITERIA), dict)


def given_to(row: Row, record: dict[str, Any], names: AbstractSet[str], *, outputs_come: bool) -> Given:
    """Return the row for one evaluator, with the criteria for this evaluator.

    Return a `Skipped` if the row has no criteria for the evaluator, or an error if the row has no output.

    Args:
      row: The mapped record.
      record: The record. Its `criteria` are an object with a key for each evaluator.
      names: Names of the evaluator. One of these names may be a key of the criteria.
      outputs_come: Whether a model writes the outputs.
    """
    criteria: dict[str, Any] = record[CRITERIA]
    known = sorted(names & criteria.keys())
    if not known:
        others = ", ".join(list(criteria)[:_SHOWN])
        named = f"names only {others}" if others else "is empty"
        return Skipped(Note("not_asked", f"the row has no criteria for this evaluator: its `{CRITERIA}` {named}"))
    if isinstance(record.get(AGENT_ERROR), str):
        return EvaluationError(ErrorCode.TARGET_FAILED, f"the agent has no output to score: {record[AGENT_ERROR]}")
    if row.outputs is None and not outputs_come and not {"outputs", "output"} & record.keys():
        return EvaluationError(
            ErrorCode.MISSING_INPUT,
            "the row has no output from the agent",
            hint="send the eval set together with its executions, give the job a target, or map a column to outputs",
        )
    return replace(row, criteria=criteria[known[0]])
