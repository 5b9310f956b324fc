"""If a library needs more memory than a sandbox has, the error is `memory_limit` and names the memory that the library
needs.
"""

import re

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.conftest import ON_BUBBLEWRAP

LOAD = """import ctypes, struct

def library(size):
    head = b"\\x7fELF\\x02\\x01\\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, MACHINE, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    data = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, size, size, 0x1000)
    return (head + data + struct.pack("<IIQQQQQQ", 2, 6, 512, 512, 512, 32, 32, 8)).ljust(0x1000, b"\\0")

def evaluate(inputs, outputs, trace):
    with open("/tmp/large.so", "wb") as file:
        file.write(library(600 << 20))
    ctypes.CDLL("/tmp/large.so")
    return 1.0
"""


@pytest.mark.parametrize("service", ["bubblewrap", "docker"], indirect=True)
async def test_a_library_that_does_not_fit_names_the_size_that_it_needs(service: Service) -> None:
    machine = "183 if __import__('platform').machine() == 'aarch64' else 62"
    code = LOAD.replace("MACHINE", machine)
    error = (await service.evaluate(Evaluator(code, limits=Limits(memory_mb=256)), Row())).error
    assert error is not None
    assert error.code == "memory_limit", error
    needed = re.search(r"raise limits\.memory_mb to over (\d+)$", error.hint or "")
    assert needed is not None, error
    assert 600 <= int(needed[1]) < 700


FILL = """import mmap

def evaluate(inputs, outputs, trace):
    kept = mmap.mmap(-1, inputs["mb"] << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    raise SystemError("error return without exception set")
"""


@ON_BUBBLEWRAP
async def test_an_extension_that_hides_a_lack_of_memory_gets_a_hint(service: Service) -> None:
    """If an extension hides a lack of memory, the error has a hint. Extensions raise such errors when an allocation
    fails, as sometimes happens to `import evaluate` in 256 MB.
    """
    evaluator = Evaluator(FILL, limits=Limits(memory_mb=256))
    hints = []
    for mb in (230, 20):
        error = (await service.evaluate(evaluator, Row({"mb": mb}))).error
        assert error is not None
        assert (error.code, error.type) == ("user_exception", "SystemError"), error
        hints.append(error.hint)
    assert hints == [
        "the memory of the sandbox is nearly used up, which may be the cause: raise limits.memory_mb",
        None,
    ]
