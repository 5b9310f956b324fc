"""Runs a row process: reads rows from its socket, calls the evaluator, and answers each row with one frame.

It looks up everything that it needs before user code runs. So user code that replaces `os.write`, `json` or `len`
changes nothing here.
"""

from __future__ import annotations

import _socket
import mmap
import os
import resource
import sys
import time

from evaluator_runner import (
    absent,
    absent_keys,
    compared,
    failures,
    generators,
    guest_setup,
    interpreter_hooks,
    jsontext,
    params,
    unreached,
)
from evaluator_runner.binding import bind
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.encode import TooLarge, encode_result
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.program import Program

RESULT, FAILED, READY = b"R", b"F", b"L"
ANSWER_BYTES = 33  # header of an answer: kind, body length, µs of run time, peak kB, bytes written to stdout and stderr
# size of an order: a letter for whether more rows may follow, then the body's length in four bytes of seven bits each
ORDER_BYTES = 5
MORE, LAST = b"M", b"1"

_read, _readv, _write, _exit, _clock = os.read, os.readv, os.write, os._exit, time.perf_counter_ns
_getpid, _getrusage, _PEAK_KB = os.getpid, resource.getrusage, 2
_mmap, _OWN_MEMORY, _LARGE_PAGES = mmap.mmap, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.MADV_HUGEPAGE
# bytes of the first read: enough for most rows, and malloc gets this memory without asking the kernel
_FIRST_BYTES = 4096
_READ_BYTES = 64 * 1024  # bytes per read; for a larger buffer, malloc would map new memory at every read
_LARGE_BYTES = 1024 * 1024  # rows of more than half a large page are read into large pages
_PAGE_BYTES = 2 * 1024 * 1024
_modules = sys.modules
_call, _encode_result = interpreter_hooks.call, encode_result
_PLAIN = frozenset((float, int, bool, str, dict, list, type(None)))  # types of values that cannot be awaited
_absent, _unset, _wrote, _unreached = absent.failed_imports, params.unset, guest_setup.wrote, unreached.hosts
_keys, _compared, _look = absent_keys.names, compared.told, compared.look
_renewals, _renew = generators.renewals, generators.renew
_socketpair = _socket.socketpair
# number of runs after which the interpreter has optimised the byte code; it begins this after eight runs
_REHEARSALS = 20
_MORE = MORE[0]


def order(body_bytes: int, *, more: bool) -> bytes:
    """Return the bytes to send before a row's body; `more` means that another row may follow."""
    length = bytes((body_bytes >> 21, body_bytes >> 14 & 127, body_bytes >> 7 & 127, body_bytes & 127))
    return (MORE if more else LAST) + length


def _with_facts(kind: bytes, body: bytes) -> bytes:
    """Add the facts recorded about a row to its answer's body."""
    if _unreached:
        body = unreached.added_to(body) if kind is RESULT else body
        _unreached.clear()
    if _keys:
        body = absent_keys.added_to(body) if kind is RESULT else body
        _keys.clear()
    if _compared:
        body = compared.added_to(body) if kind is RESULT else body
        _compared.clear()
    return params.added_to(absent.added_to(body))


class RowProcess:
    """Runs rows in a process forked from the loaded program.

    The process copies each page of memory that it writes to, and even counting a reference to an object is a write. So
    the code for ordinary rows uses few objects: names in this module, and attributes of this object.
    """

    def __init__(self, program: Program, *, result_bytes: int, written: tuple[int, int]) -> None:
        entry = program.entry
        self._sock = self._pid = -1
        self._program = program
        self._decode, self._bind, self._call, self._convert = entry.decode, entry.bind, entry.call, entry.convert
        self._pairs = entry.compared
        self._result_bytes = result_bytes
        self._order: bytes | memoryview = b""  # the row to answer, as the supervisor sent it
        self._left = bytearray()  # bytes of later rows that were read together with this row
        self._at_once = _FIRST_BYTES
        self._written = written

    def serve(self, sock: int) -> None:
        """Run rows until the last one. Never returns."""
        try:
            self._sock = sock
            self._pid = _getpid()
            if _renewals:
                _renew()
            while self._serve_one():
                pass
        finally:
            _exit(0)

    def rehearse(self) -> None:
        """Answer rows without user code before rows are forked, so that Python optimises the byte code only once."""
        try:
            ours, theirs = _socketpair()
        except OSError:
            return
        self._sock, self._pid = theirs.fileno(), _getpid()
        bind, call, convert = self._replace(None, _score, None)
        for _ in range(_REHEARSALS):
            ours.send(_WARM_ROW)
            self._serve_one()
            ours.recv(_FIRST_BYTES)
        self._replace(bind, call, convert)
        ours.close()
        theirs.close()

    def warm_up(self) -> None:
        """Write to the memory that a row will use, because the first write after a fork copies a page."""
        self._pid = _getpid()
        bind, call, convert = self._replace(None, _score, None)
        self._order = _WARM_ROW
        self._reply()
        self._replace(bind, call, convert)

    def _replace(self, bind: Any, call: Any, convert: Any) -> tuple[Any, Any, Any]:
        """Replace the functions that are called for a row; return the previous functions."""
        before = self._bind, self._call, self._convert
        self._bind, self._call, self._convert = bind, call, convert
        return before

    def _serve_one(self) -> bool:
        data: bytes | memoryview = b"" if self._left else _read(self._sock, self._at_once)
        if len(data) < ORDER_BYTES or len(data) - ORDER_BYTES != (
            (data[1] << 21) + (data[2] << 14) + (data[3] << 7) + data[4]
        ):
            data = self._one_row(data)
        more: bool = data[0] == _MORE
        if more:
            self._at_once = _READ_BYTES
        self._order = data
        del data  # free the memory of the encoded row, which the evaluator may need
        send(self._sock, self._reply())
        return more

    def _one_row(self, data: bytes | memoryview) -> bytes | memoryview:
        """Return the next row. `data` has bytes that were already read: of this row, and perhaps of later ones."""
        buffer = self._left
        buffer += data
        self._fill(buffer, ORDER_BYTES)
        end = ORDER_BYTES + (buffer[1] << 21) + (buffer[2] << 14) + (buffer[3] << 7) + buffer[4]
        if end > _LARGE_BYTES:
            return self._mapped(buffer, end)
        self._fill(buffer, end)
        if len(buffer) == end:  # usually, nothing follows the row, so returning the whole buffer saves a copy
            self._left = bytearray()
            return memoryview(buffer)
        with memoryview(buffer) as view:
            row = bytes(view[:end])
        del buffer[:end]
        return row

    def _fill(self, buffer: bytearray, size: int) -> None:
        while len(buffer) < size:
            data = _read(self._sock, _READ_BYTES)
            if not data:
                _exit(0)
            buffer += data

    def _mapped(self, buffer: bytearray, size: int) -> memoryview:
        """Read a large row into memory of its own.

        The memory has pages of 2 MB where the kernel offers them, which means few page faults and no copies.
        """
        mapped = _mmap(-1, -(-size // _PAGE_BYTES) * _PAGE_BYTES, _OWN_MEMORY)
        try:
            mapped.madvise(_LARGE_PAGES)
        except OSError:  # the kernel may not support large pages
            pass
        held = min(len(buffer), size)
        view = memoryview(mapped)[:size]
        with memoryview(buffer) as first:
            view[:held] = first[:held]
        del buffer[:held]
        while held < size:
            with view[held:] as rest:
                count = _readv(self._sock, [rest])
            if not count:
                _exit(0)
            held += count
        return view

    def _reply(self) -> bytes:
        """Call the evaluator for the row that was read, and return the answer."""
        started = _clock()
        try:
            try:
                order = self._order
                text = order.decode() if type(order) is bytes else str(order, "utf-8")
                self._order = order = b""
                body = self._decode(text, ORDER_BYTES)
                del text
                named = body.get("named")
                args = [] if named is not None or "together" in body else body.pop("args")
            except (ValueError, RecursionError, KeyError, AttributeError) as error:
                raise Failure("binding_error", f"the row cannot be read: {error}") from None
            if named is not None:
                args, body = bind(self._program.entry, named)
            elif self._bind is not None:
                args, body = self._bind(args)
            _look(self._pairs, args, body)
            started = _clock()
            value = _call(self._call, args, body)
            if type(value) not in _PLAIN:
                value = self._settled(value)
            if self._convert is not None:
                value = _call(self._convert, (value,))
            kind, body = RESULT, _encode_result(value, limit=self._result_bytes)
        except TooLarge:
            kind, body = FAILED, self._too_large()
        except BaseException as raised:  # noqa: BLE001 - user code may raise anything
            kind, body = FAILED, self._describe(raised)
        if _getpid() != self._pid:
            _exit(0)  # user code has forked, and the child has reached this line, too; a row has only one answer
        if _absent or _unset or _unreached or _keys or _compared:
            body = _with_facts(kind, body)
        run_us: int = (_clock() - started) // 1000
        out, err = self._flush() if _wrote else (0, 0)
        peak_kb: int = _getrusage(0)[_PEAK_KB]  # type: ignore[assignment]
        numbers = (len(body) << 224) + (run_us << 168) + (peak_kb << 112) + (out << 56) + err
        return kind + numbers.to_bytes(32, "big") + body

    def _flush(self) -> tuple[int, int]:
        """Write what the row printed; return the number of bytes that the row wrote to each stream."""
        before, self._written = self._written, guest_setup.flush_streams()
        _wrote.clear()
        return self._written[0] - before[0], self._written[1] - before[1]

    def _settled(self, value: Any) -> Any:
        """Return the value, awaited if it is awaitable."""
        if hasattr(type(value), "__await__") or type(value).__name__ == "coroutine":
            return _call(self._awaited, (value,))
        return value

    def _awaited(self, value: Any) -> Any:
        if not self._program.needs_loop and "asyncio" not in _modules and hasattr(type(value), "send"):
            try:
                value.send(None)
            except StopIteration as stop:
                return stop.value
            raise RuntimeError("the coroutine waits for something, but there is no event loop here")
        import asyncio

        async def once() -> Any:
            return await value

        return asyncio.run(once())

    def _describe(self, raised: BaseException) -> bytes:
        try:
            error = failures.from_exception(raised, self._program.lines, general="user_exception")
        except BaseException:  # noqa: BLE001 - out of memory, or an exception whose methods raise
            code = "memory_limit" if issubclass(type(raised), MemoryError) else "user_exception"
            error = failures.error(code, "the evaluator raised an exception that cannot be shown")
        return _error_body(error)

    def _too_large(self) -> bytes:
        message = f"the returned value is larger than {self._result_bytes // 1024} KB"
        hint = "return a score and a short reason, or raise limits.result_kb"
        return _error_body(failures.error("result_too_large", message, hint=hint))


_WARM_BODY = b'{"args":[{"a":[1,2.5,true]},"b",null]}'
_WARM_ROW = order(len(_WARM_BODY), more=False) + _WARM_BODY


def _score(*_args: object) -> float:
    return 0.5


def send(sock: int, data: bytes) -> None:
    """Write all data to a blocking socket; end the process when the other end is closed."""
    try:
        count = _write(sock, data)
        while count < len(data):
            data = data[count:]
            count = _write(sock, data)
    except OSError:
        _exit(0)


def _error_body(error: dict[str, Any]) -> bytes:
    return jsontext.to_bytes(f'{{"error":{jsontext.encode(error)}}}')
