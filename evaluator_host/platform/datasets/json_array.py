"""Splits a JSON array, or a sequence of JSON objects, into its items. Only one item is in memory at a time.

Streaming parsers build the path to every value, so that 100,000 nested arrays take gigabytes. This module only counts
how deep brackets are nested. The items stay JSON, and the host's own decoder, which limits nesting, decodes each of
them later.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

_CHUNK_BYTES: Final = 1 << 16
_OUTSIDE: Final = re.compile(rb'["\[\]{},]')
_INSIDE: Final = re.compile(rb'["\\]')
_BLANK: Final = b" \t\r\n"


class NotAnArray(Exception):
    """The file is not a JSON array; the message says why."""


class ItemTooLong(Exception):
    """An array item is over the size limit; the rest of the file was not read."""


def array_items(file: BinaryIO, *, max_item_bytes: int) -> Iterator[bytes]:
    """Yield each array item as JSON, from the file's current position.

    The function splits at the commas of the array itself, and does not check that items are valid JSON.

    Raises:
      NotAnArray: the file does not begin with `[`, ends within the array, or has more text after the array.
      ItemTooLong: an item has more than `max_item_bytes` bytes.
    """
    if _skip_blank(file) != b"[":
        raise NotAnArray("it does not begin with [")
    cutter = _Cutter(max_item_bytes)
    while chunk := file.read(_CHUNK_BYTES):
        yield from cutter.feed(chunk)
        if cutter.ended:
            rest = cutter.rest + file.read(_CHUNK_BYTES)
            if rest.strip(_BLANK):
                raise NotAnArray("there is more text after the array")
            return
    raise NotAnArray("it ends before the array does")


def object_texts(file: BinaryIO, *, max_item_bytes: int) -> Iterator[bytes]:
    """Yield each object as JSON, from the file's current position. Whitespace and commas may separate the objects.

    Any other text before an object is yielded together with the object. Text after the last object is yielded by
    itself.

    Raises:
      ItemTooLong: an item has more than `max_item_bytes` bytes.
    """
    cutter = _ObjectCutter(max_item_bytes)
    while chunk := file.read(_CHUNK_BYTES):
        yield from cutter.feed(chunk)
    yield from cutter.rest_of_file()


class _Cutter:
    """Splits an array into its items, as the chunks of the file arrive."""

    between = _BLANK  # characters that may appear between items

    def __init__(self, max_item_bytes: int) -> None:
        self._limit = max_item_bytes
        self._depth = 1
        self._in_string = False
        self._escaped = False
        self._item = bytearray()
        self._items = 0
        self.ended = False
        self.rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        start = position = 0
        while not self.ended:
            if self._in_string:
                position = self._through_string(chunk, position)
                if self._in_string:
                    break
                continue
            found = _OUTSIDE.search(chunk, position)
            if found is None:
                break
            position = found.end()
            if self._take(found.group()):
                self._keep(chunk[start : self._end(found)])
                start = position
                yield from self._cut(last=self.ended)
        if self.ended:
            self.rest = chunk[start:]
        else:
            self._keep(chunk[start:])

    def _end(self, found: re.Match[bytes]) -> int:
        """Return the position at which the item ends; `found` is the structural character that ends it."""
        return found.start()

    def _take(self, sign: bytes) -> bool:
        """Update the state for a structural character; return whether an item ends before this character."""
        if sign == b'"':
            self._in_string = True
        elif sign in b"[{":
            self._depth += 1
        elif sign in b"]}":
            self._depth -= 1
            self.ended = self._depth == 0
            return self.ended
        return sign == b"," and self._depth == 1

    def _through_string(self, chunk: bytes, position: int) -> int:
        """Return the position after the string, or the end of the chunk."""
        if self._escaped:
            self._escaped = False
            position += 1
        while found := _INSIDE.search(chunk, position):
            position = found.end()
            if found.group() == b'"':
                self._in_string = False
                return position
            if position == len(chunk):
                self._escaped = True
            position += 1
        return len(chunk)

    def _keep(self, part: bytes) -> None:
        self._item += part
        if len(self._item) > self._limit:
            raise ItemTooLong

    def _cut(self, *, last: bool) -> Iterator[bytes]:
        text = bytes(self._item).strip(self.between)
        self._item.clear()
        # `[]` has no item, but `[1,]` has a second item, which is empty and so not valid
        if text or not last or self._items:
            self._items += 1
            yield text


class _ObjectCutter(_Cutter):
    """Splits a sequence of objects that are not in an array."""

    between = _BLANK + b","

    def __init__(self, max_item_bytes: int) -> None:
        super().__init__(max_item_bytes)
        self._depth = 0

    def _end(self, found: re.Match[bytes]) -> int:
        return found.end()

    def _take(self, sign: bytes) -> bool:
        super()._take(sign)
        self.ended = False
        closes = sign in b"]}" and self._depth <= 0
        self._depth = max(self._depth, 0)
        return closes

    def rest_of_file(self) -> Iterator[bytes]:
        """Yield the text after the last object, unless it is only whitespace and commas."""
        yield from filter(None, self._cut(last=True))


def _skip_blank(file: BinaryIO) -> bytes:
    while (sign := file.read(1)) and sign in _BLANK:
        pass
    return sign
