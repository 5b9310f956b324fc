"""The program that `limited_process` runs in child processes: calls one function after another within limits.

A request consists of a head, the lengths of its parts, names of modules, a pickle of (function, arguments), and large
arguments. An answer consists of a head and bytes. If a call exceeds its memory limit, MemoryError is raised. If a call
exceeds its limit of processor time, SIGXCPU ends the process.
"""

import ctypes
import math
import os
import pickle
import resource
import signal
import struct
import sys
import time
import traceback
from contextlib import suppress
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Final

from evaluator_host.engine.system.priority import give_way
from evaluator_host.types.errors import InvalidRequest, MachineExhausted, TooLarge
from evaluator_host.types.json_values import encode_json

# head of a request: number of parts that follow; then the limits on processor time (in seconds), memory, files and the
# result (in bytes)
REQUEST: Final = struct.Struct("!QQQQQ")
# head of an answer: kind, whether the child serves another call, number of bytes that follow
REPLY: Final = struct.Struct("!c?Q")
_CALLS: Final = 500  # replace the child after this many calls, because native parsers may leak memory
_GROWTH_BYTES: Final = 256 << 20  # a child's address space may grow by this many bytes after its start
_NICE: Final = 5  # nice value of a child, so that evaluator calls get the processor first
_FAULT_CHARS: Final = 4000
_PR_SET_PDEATHSIG: Final = 1


class AnswerKind(bytes, Enum):
    """The kind of an answer from a limited child process."""

    BYTES = b"B"
    JSON = b"J"
    REFUSED = b"R"
    FAULT = b"F"
    MEMORY = b"M"
    LARGE = b"L"
    PROCESSOR_TIME = b"C"  # the host derives this kind and the next one from the exit status; a child never sends them
    CRASH = b"X"


def main() -> None:
    """Answer requests from standard input until the input closes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return  # the host ended before it had sent a whole request
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    give_way(_NICE)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)  # otherwise the host could mistake the output of a library for an answer
    os.close(null)
    start_bytes = _address_space()
    for left in reversed(range(_CALLS)):
        head = requests.read(REQUEST.size)
        if len(head) < REQUEST.size:
            return
        parts, *limits = REQUEST.unpack(head)
        sizes = [int.from_bytes(requests.read(8)) for _ in range(parts)]
        modules, *call = map(requests.read, sizes)
        start_bytes += _import(modules.decode().split())
        kind, body = _answer(*call, limits=limits)
        reusable = left > 0 and kind is not AnswerKind.MEMORY and _address_space() - start_bytes < _GROWTH_BYTES
        replies.write(REPLY.pack(kind, reusable, len(body)) + body)
        replies.flush()
        if not reusable:
            return


def _import(modules: list[str]) -> int:
    """Import the modules that are installed; return how many bytes of address space they take."""
    before = _address_space()
    for name in modules:
        with suppress(ImportError):  # the function that needs the module will report that it is missing
            import_module(name)
    return _address_space() - before


def _answer(call: bytes, *large: bytes, limits: list[int]) -> tuple[AnswerKind, bytes]:
    """Call the function of a request with its limits; return the kind and the bytes of the answer."""
    cpu_s, memory_bytes, file_bytes, result_bytes = limits
    try:
        function, args = pickle.loads(call, buffers=large)  # noqa: S301 - from the host
        _limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + cpu_s))
        _limit(resource.RLIMIT_FSIZE, file_bytes)
        _limit(resource.RLIMIT_AS, _address_space() + memory_bytes)
        value = function(*args)
        kind, body = (AnswerKind.BYTES, value) if isinstance(value, bytes) else (AnswerKind.JSON, encode_json(value))
        return (kind, body) if len(body) <= result_bytes else (AnswerKind.LARGE, b"")
    except MemoryError:
        return AnswerKind.MEMORY, b""
    except (InvalidRequest, TooLarge, MachineExhausted) as error:
        refusal = {"code": error.code, "detail": error.detail, "problems": error.problems}
        return AnswerKind.REFUSED, encode_json(refusal)
    except Exception:  # noqa: BLE001 - the host reports it as its own fault
        return AnswerKind.FAULT, traceback.format_exc()[-_FAULT_CHARS:].encode(errors="replace")
    finally:
        _limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
