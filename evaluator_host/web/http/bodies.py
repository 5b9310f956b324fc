"""JSON bodies: decoded once, and refused before they are when what they become would fill the host's memory.

A body of 32 MB may hold ten million small objects, each some sixty bytes to Python and hundreds as a row; a fault in
each would be a message. So values are weighed before they are decoded, and rows counted before they are checked.
"""

import json
from typing import Any, Final

from starlette.requests import Request

from evaluator_host.dialects.uipath.eval_set import items_of
from evaluator_host.model.errors import InvalidRequest, Problem
from evaluator_host.model.json_values import InvalidJson, decode_json

DECODED_MB: Final = 512  # a body of 32 MB that is mostly text stays below, whatever its punctuation
_WEIGHED_FROM: Final = 4 << 20  # a smaller body cannot become that much
_WEIGHTS: Final = ((b"{", 64), (b"[", 56), (b":", 110), (b",", 56))  # bytes of a dict, a list, an entry, an element


class JsonRequest(Request):
    """A request whose body is decoded by orjson."""

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
          InvalidRequest: it is compressed: what a small one would become is not known before it fills the memory.
        """
        encoding = self.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise InvalidRequest(f"Content-Encoding {encoding[:40]!r} is not taken; send the JSON as it is")
        return await super().body()

    async def json(self) -> Any:
        """Return the decoded body; integers beyond 64 bits stay exact.

        Raises:
          InvalidRequest: it holds too many values, or more rows than one request may bring.
        """
        body = await self.body()
        _weigh(body)
        try:
            value = decode_json(body)
        except InvalidJson as error:
            raise json.JSONDecodeError(str(error), "", 0) from error
        if isinstance(value, dict):
            _require_few_rows(value, self.app.state.max_rows)
        return value


def _require_few_rows(body: dict[str, Any], ceiling: int) -> None:
    """Check how many rows a batch, or the order of a job, brings along."""
    if isinstance(rows := body.get("rows"), list):
        require_rows(len(rows), ceiling)
    dataset = body.get("dataset")
    if isinstance(dataset, dict) and (brought := len(_brought(dataset))) > ceiling:
        message = f"{brought} rows are over this host's ceiling of {ceiling} for rows in a job's order"
        hint = "upload them as a data set (POST /v1/datasets, client.datasets.upload) and name that"
        raise InvalidRequest("too many rows in a job's order", problems=(Problem("dataset.rows", message, hint),))


def _brought(dataset: dict[str, Any]) -> list[Any]:
    """Return the rows, or test cases, that the order of a job brings along."""
    eval_set = dataset.get("eval_set")
    if isinstance(eval_set, dict):
        return items_of(eval_set)
    rows = dataset.get("rows")
    return rows if isinstance(rows, list) else []


def require_rows(rows: int, ceiling: int) -> None:
    """Check the number of rows of a batch.

    Raises:
      InvalidRequest: there are too many.
    """
    if rows > ceiling:
        problem = Problem("rows", f"{rows} rows are over this host's ceiling of {ceiling}", "send fewer")
        raise InvalidRequest("too many rows in one batch", problems=(problem,))


def _weigh(body: bytes) -> None:
    if len(body) < _WEIGHED_FROM:
        return
    weight = len(body) + sum(body.count(mark) * size for mark, size in _WEIGHTS)
    if weight > DECODED_MB << 20:
        raise InvalidRequest(
            f"the body holds so many values that they would take about {weight >> 20} MB; send fewer at once"
        )
