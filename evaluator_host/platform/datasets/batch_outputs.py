"""Refuses a call, before any row is scored, if the code reads outputs and no row of the call has outputs."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.reads import OutputsRead
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import DEFAULT_CALLER, Caller
from evaluator_host.platform.datasets.suggestion import FIRST_ROWS, listed, output_column
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Json, Row
from evaluator_host.types.json_values import decode_json

_DECODED_BYTES: Final = 64 << 10  # maximum size of a large row's inputs that are decoded for a message
_GIVE: Final = 'give each row its outputs; if the rows need no outputs, write "outputs": "none" next to "rows"'

Outputs: TypeAlias = Literal["none"] | None
"""`none` means that the rows need no outputs."""


async def require_outputs(
    service: Service, evaluator: Evaluator, rows: Sequence[Row | EncodedRow], *, caller: Caller = DEFAULT_CALLER
) -> None:
    """If the evaluator reads outputs, check that at least one of the rows has outputs.

    Raises:
      InvalidRequest: the evaluator reads outputs, and no row has outputs.
      HostError: for the reasons given at `Service.outputs_read`.
    """
    if len(rows) < 2 or any(map(_gives_any, rows)):
        return
    reads = await service.outputs_read(evaluator, caller=caller)
    if reads is None or not reads.names:
        return
    first = [_decoded(one) for one in rows[:FIRST_ROWS]]
    if reads.lack(first) and all(messages_of(row) is None for row in first):
        message = no_outputs([row.inputs for row in first], len(rows), reads)
        raise InvalidRequest(message, problems=(Problem("rows", "the evaluator reads outputs", _GIVE),))


def no_outputs(inputs: Sequence[dict[str, Json]], count: int, reads: OutputsRead | None = None) -> str:
    """Return the error message for `count` rows without outputs; it names the input that was probably meant.

    `inputs` are the inputs of the first rows; `reads` says how the code reads outputs, if this is known.
    """
    columns = list(dict.fromkeys(name for one in inputs for name in one))
    read, taken = ((), ()) if reads is None else (reads.names, reads.others)
    found = output_column(columns, inputs, read=read, taken=taken)
    meant = "" if found is None else f"; did you mean {found} as outputs?"
    return f"the code reads outputs, but none of the {count} rows has outputs; the inputs have {listed(columns)}{meant}"


def _gives_any(row: Row | EncodedRow) -> bool:
    if isinstance(row, Row):
        return row.has_output
    return any(bytes(row.fields.get(name, b"null")[:5]) != b"null" for name in ("outputs", "messages"))


def _decoded(row: Row | EncodedRow) -> Row:
    if isinstance(row, Row):
        return row
    small = {name: bytes(text) for name, text in row.fields.items() if len(text) <= _DECODED_BYTES}
    return Row(**{name: decode_json(text) for name, text in small.items()})
