"""Verbs over data sets: `client.datasets`."""

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Final

from evaluator_host.client.calls import Call, encode, path_part, query
from evaluator_host.client.transport import TransportT, Verbs, stream, verb
from evaluator_host.datasets.format import Format
from evaluator_host.model.evaluator import Json
from evaluator_host.schemas.datasets import DatasetReport

_PAGE_ROWS: Final = 500
_PIECE_BYTES: Final = 1 << 16


class DatasetVerbs(Verbs[TransportT]):
    """Data sets of the key's workspace."""

    @verb
    async def upload(
        self, name: str, data: Path | str | Iterable[dict[str, Json]], *, replace: bool = False
    ) -> DatasetReport:
        """Store rows under a name. Neither a file nor an iterable is ever whole in memory.

        Args:
          name: Name of the data set.
          data: Path of a file (.jsonl .csv .tsv .json .parquet), or rows: `[{"question": …, "answer": …}]`.
          replace: Whether it replaces the data set of that name, if there is one.

        Raises:
          NameTaken: there is one of that name, and `replace` is false.
          InvalidRequest: the file is not of its format, or there is no row in it.
          TooLarge: it has more bytes or rows than the host takes.
        """
        path = f"/v1/datasets{query(name=name, replace=replace)}"
        if not isinstance(data, Path | str):
            return await self._upload(path, _lines(data), Format.JSONL)
        format_ = Format.of_name(str(data))
        with await self._transport.call_blocking(Path(data).open, "rb") as file:
            size = await self._transport.call_blocking(_file_bytes, file)
            return await self._upload(path, self._pieces(file), format_, size)

    @verb
    async def all(self) -> list[DatasetReport]:
        """Return the data sets, the newest first."""
        return await self._transport.send(Call("GET", "/v1/datasets", list[DatasetReport]))

    @verb
    async def get(self, name: str) -> DatasetReport:
        """Return the columns, size and bad lines of a data set.

        Args:
          name: Name of the data set.

        Raises:
          NotFound: there is none of that name.
        """
        return await self._transport.send(Call("GET", f"/v1/datasets/{path_part(name)}", DatasetReport))

    @stream
    async def rows(self, name: str) -> AsyncGenerator[dict[str, Json], None]:
        """Yield the rows of a data set, read a page at a time.

        Args:
          name: Name of the data set.

        Raises:
          NotFound: there is none of that name.
        """
        first = 0
        while True:
            path = f"/v1/datasets/{path_part(name)}/rows{query(first=first, limit=_PAGE_ROWS)}"
            page = await self._transport.send(Call("GET", path, list[dict[str, Any]]))
            for row in page:
                yield row
            if len(page) < _PAGE_ROWS:
                return
            first += len(page)

    @verb
    async def delete(self, name: str) -> None:
        """Remove a data set. Jobs that use its rows keep them.

        Args:
          name: Name of the data set.

        Raises:
          NotFound: there is none of that name.
        """
        await self._transport.send(Call("DELETE", f"/v1/datasets/{path_part(name)}", NoneType))

    async def _upload(
        self, path: str, body: AsyncGenerator[bytes, None], format_: Format, size: int = 0
    ) -> DatasetReport:
        headers = (("Content-Type", format_.media_type), *((("Content-Length", str(size)),) if size else ()))
        async with aclosing(body):
            return await self._transport.send(Call("POST", path, DatasetReport, body, headers))

    async def _pieces(self, file: BinaryIO) -> AsyncGenerator[bytes, None]:
        while piece := await self._transport.call_blocking(file.read, _PIECE_BYTES):
            yield piece


async def _lines(rows: Iterable[dict[str, Json]]) -> AsyncGenerator[bytes, None]:
    for row in rows:
        yield encode(row) + b"\n"


def _file_bytes(file: BinaryIO) -> int:
    """Return the size of a file; 0 of a pipe, which has none."""
    return os.fstat(file.fileno()).st_size
