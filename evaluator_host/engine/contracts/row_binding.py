"""Converts rows to the bodies of calls, as the evaluator's dialect requires; converts large rows in a child process."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from typing import Any, Final, TypeAlias

import orjson

from evaluator_host.engine.contracts.binding import Binding, encode
from evaluator_host.engine.contracts.escaped_keys import may_have_escaped_key
from evaluator_host.engine.contracts.otlp import TRACE_SPANS
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.contracts.trace_tree import has_more_spans
from evaluator_host.engine.contracts.whole_numbers import exactly, may_be_rounded
from evaluator_host.types.evaluator import Contract, EncodedRow, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_texts import Octets
from evaluator_host.types.json_values import decode_json, encode_json, is_small
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note

# maximum number of values in a row that this process converts, in about a millisecond; a child process converts larger
# rows
_VALUES: Final = 5000
_TRACE_VALUES: Final = 400  # the limit for a trace is lower, because converting a span of ten values takes 30 µs
_CHARACTERS: Final = 256 << 10
_ENCODED_BYTES: Final = 8 << 10
# bytes of the number at the start of a child's answer: the length of its head (JSON with the error and the notes)
_HEAD: Final = 4

Shaped: TypeAlias = tuple[bytes | EvaluationError, tuple[Note, ...]]
"""The JSON body of a row's call or an error, and notes for the row's result."""


def shaped_at_once(row: Row | EncodedRow) -> Row | None:
    """Return the decoded row, or None if converting it takes over a millisecond and needs a child process."""
    if isinstance(row, EncodedRow):
        small = sum(map(len, row.fields.values())) <= _ENCODED_BYTES and is_small(row.answers, values=_VALUES)
        return decoded_row(row) if small else None
    if row.trace and not is_small(row.trace, values=_TRACE_VALUES, characters=_CHARACTERS):
        return None
    values = [row.inputs, row.outputs, *filter(None, (row.variables, row.criteria, row.response, row.answers))]
    return row if is_small(values, values=_VALUES, characters=_CHARACTERS) else None


def decoded_row(row: EncodedRow) -> Row:
    """Return the row that is encoded as JSON in `row`."""
    return Row(**{**decode_json(row.body), "index": row.index, "answers": row.answers})


def encoded_row(row: Row) -> EncodedRow | EvaluationError:
    """Encode a row as JSON, or return the error for a row that cannot be written as JSON."""
    made = encoded_fields(row.fields)
    if isinstance(made, EvaluationError):
        return made
    return EncodedRow(dict(made), row.index, row.answers, row.requests)


def encoded_fields(row: dict[str, Any]) -> dict[str, bytes] | EvaluationError:
    """Encode each field of a row as JSON, or return the error for a field that cannot be written as JSON."""
    texts = dict[str, bytes]()
    for name, value in row.items():
        text = encode(Binding(value))
        if isinstance(text, EvaluationError):
            return text
        texts[name] = text
    return texts


def shape_unread(
    row: EncodedRow,
    contract: Contract,
    settings: EvaluatorSettings,
    language: Language,
    not_read: AbstractSet[str] = frozenset(),
) -> tuple[tuple[Octets, ...], tuple[Note, ...]] | None:
    """Return the body of a call in parts, if the dialect passes on the large fields of a row without reading them.

    Otherwise return None. `not_read` contains the fields of a row that the code does not read.
    """
    unread = dialect_of(contract).unread
    if len(row.fields.get("messages", b"")) > len(b"null"):
        return None
    if sum(len(text) for name, text in row.fields.items() if name not in unread) > _ENCODED_BYTES:
        return None
    values: dict[str, Any] = {name: decode_json(bytes(text)) for name, text in row.fields.items() if name not in unread}
    texts = {name: text for name, text in row.fields.items() if name in unread}
    if any(may_be_rounded(text, language) for name, text in texts.items() if name not in not_read):
        return None
    if any(may_have_escaped_key(text, language) for text in texts.values()):
        return None
    values |= {name: orjson.Fragment(bytes([number])) for number, name in enumerate(texts)}
    shaped, notes = shape(Row(**values, index=row.index, answers=row.answers), contract, settings, language, not_read)
    return None if isinstance(shaped, EvaluationError) else (_filled(shaped, list(texts.values())), notes)


def _filled(shaped: bytes, texts: list[Octets]) -> tuple[Octets, ...]:
    """Return JSON in parts, in which each placeholder (a control character) is replaced with its text from `texts`."""
    # this matches only placeholders, because encoders escape control characters in data
    parts = re.split(rb"([\x00-\x1f])", shaped)
    return tuple(texts[part[0]] if number % 2 else part for number, part in enumerate(parts))


def shape(
    row: Row,
    contract: Contract,
    settings: EvaluatorSettings,
    language: Language,
    not_read: AbstractSet[str] = frozenset(),
) -> Shaped:
    """Return the body of a row's call as JSON (or an error if the row cannot be converted), and notes for the result.

    `not_read` contains the fields of a row that the code does not read.
    """
    if row.trace is not None and has_more_spans(row.trace, TRACE_SPANS):
        message = f"the trace has over {TRACE_SPANS} spans"
        return EvaluationError(ErrorCode.BINDING_ERROR, message, hint="send only the spans that are scored"), ()
    binding = dialect_of(contract).bind_for(language)(row, settings)
    return exactly(row, binding, settings, language, not_read) if isinstance(binding, Binding) else (binding, ())


def shape_in_child(
    body: bytes,
    more: bytes,
    contract: Contract,
    settings: EvaluatorSettings,
    language: Language,
    not_read: AbstractSet[str] = frozenset(),
) -> bytes:
    """Call `shape` in a child process, and return its result as bytes for `from_child`.

    Args:
      body: `EncodedRow.body` of the row.
      more: The row's index and the models' answers so far, as JSON.
      contract: Contract of the evaluator.
      settings: Settings of the evaluator.
      language: Language of the evaluator.
      not_read: Fields of the row that the code does not read.
    """
    row = Row(**{**decode_json(body), **decode_json(more)})
    shaped, notes = shape(row, contract, settings, language, not_read)
    error, sent = (asdict(shaped), b"") if isinstance(shaped, EvaluationError) else (None, shaped)
    head = encode_json({"error": error, "notes": notes})
    return b"".join((len(head).to_bytes(_HEAD), head, sent))


def from_child(answer: bytes) -> Shaped:
    """Decode the bytes from a child process: the body of the row's call or an error, and notes for the result."""
    start = _HEAD + int.from_bytes(answer[:_HEAD])
    head: dict[str, Any] = decode_json(answer[_HEAD:start])
    notes = tuple(Note(**note) for note in head["notes"])
    error: dict[str, Json] | None = head["error"]
    if error is not None:
        return EvaluationError(**{**error, "code": ErrorCode(error["code"])}), notes
    return answer[start:], notes
