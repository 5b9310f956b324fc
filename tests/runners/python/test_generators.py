"""A seed that code sets while it loads applies in each row; without a seed, each row gets different random numbers."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import LIMITS, RunnerProcess, body

ENTRY = "\ndef evaluate(inputs, outputs, trace):\n    return "
THREADS = "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); "

SEEDED = [
    ("import random; random.seed(42)", "random.random()", 0.6394267984578837),
    ("from random import seed, random; seed(42)", "random()", 0.6394267984578837),
    ("import random; random.seed('texts too'); random.random()", "random.gauss(0, 1)", None),
    ("import random; R = random.Random(7)", "R.random()", 0.32383276483316237),
    ("import random; R = random.Random(); R.seed(7)", "R.random()", 0.32383276483316237),
    ("import random; R = random.Random(); R.setstate(random.Random(7).getstate())", "R.random()", 0.32383276483316237),
    ("import random\nclass Mine(random.Random):\n    pass\nR = Mine(7)", "R.random()", 0.32383276483316237),
    (
        "import random; random.seed(1); S = random.getstate(); random.seed(); random.setstate(S)",
        "random.random()",
        None,
    ),
    ("import random; random.seed(); random.seed(42)", "random.random()", 0.6394267984578837),
]
UNSEEDED = [
    ("import random", "random.random()"),
    ("import random; random.random()", "random.random()"),
    ("import random; random.seed(42); random.seed()", "random.random()"),
    ("import random; R = random.Random()", "R.random()"),
    ("import random\nclass Mine(random.Random):\n    pass\nR = [{'of': Mine()}]", "R[0]['of'].random()"),
    ("import random; random.seed(42); R = random.Random()", "R.random()"),
    ("import random; R = random.SystemRandom(); random.seed(42)", "R.random()"),
    ("import random, secrets, uuid; random.seed(42)", "[secrets.token_hex(), str(uuid.uuid4())]"),
    ("", "__import__('random').random()"),
]
NUMPY = """
import numpy as np
from numpy.random import {imported}
{set_up}
MADE = [
    {made}
]
def evaluate(inputs, outputs, trace):
    return [{used}, *[made.normal() for made in MADE]]
"""
NUMPY_SEEDED = (
    "np.random.default_rng(7)",
    "np.random.RandomState(7)",
    "np.random.Generator(np.random.Philox(7)).spawn(1)[0]",
    "np.random.default_rng(np.random.SeedSequence(7))",
)
NUMPY_UNSEEDED = (
    "np.random.default_rng()",
    "np.random.RandomState()",
    "np.random.default_rng().spawn(1)[0]",
    "np.random.Generator(np.random.SFC64())",
)


@pytest.fixture
def with_numpy(start: Any) -> RunnerProcess:
    return start("--packages", str(Path(importlib.util.find_spec("numpy").origin).parents[1]))


def numbers(runner: RunnerProcess, code: str, used: str, *, share: str | None = None) -> list[Any]:
    loaded = runner.load(code + ENTRY + used + "\n")
    assert loaded.type == "loaded", loaded
    for _ in range(4):
        runner.post({"args": [{}, "a", None]}, share=share)
    return [body(runner.receive())["value"] for _ in range(4)]


def assert_seeded(found: list[Any], first: float | None) -> None:
    assert found == [found[0]] * 4
    assert first is None or found[0] == first


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("code", "used", "first"), SEEDED)
def test_a_seed_of_the_module_holds_for_each_row(runner: RunnerProcess, code: str, used: str, first: Any) -> None:
    assert_seeded(numbers(runner, code, used), first)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("code", "used"), UNSEEDED)
def test_a_generator_without_a_seed_differs_from_row_to_row(runner: RunnerProcess, code: str, used: str) -> None:
    assert len({str(one) for one in numbers(runner, code, used)}) == 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("set_up", "holds"),
    [
        ("seed(42)", True),
        ("np.random.set_state(np.random.RandomState(42).get_state())", True),
        ("np.random.seed(42); np.random.seed()", False),
        ("np.random.rand()", False),
    ],
)
def test_generators_of_numpy(with_numpy: RunnerProcess, set_up: str, holds: bool) -> None:
    made = ",\n    ".join(NUMPY_SEEDED + NUMPY_UNSEEDED)
    code = NUMPY.format(imported="seed, rand", set_up=set_up, made=made, used="rand()")
    with_numpy.load(code)
    rows = [body(with_numpy.call({}, 1, None))["value"] for _ in range(3)]
    differ = [len(set(values)) for values in zip(*rows, strict=True)]
    assert differ == [1 if holds else 3, *[1] * len(NUMPY_SEEDED), *[3] * len(NUMPY_UNSEEDED)]
    assert not holds or rows[0][0] == 0.3745401188473625
    assert rows[0][1] == 0.0012301533574825742


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("code", "used", "first"), [SEEDED[0], SEEDED[3]])
def test_rows_that_load_again_have_the_seed_too(runner: RunnerProcess, code: str, used: str, first: Any) -> None:
    assert_seeded(numbers(runner, THREADS + code, used), first)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("code", "used"), [UNSEEDED[0], UNSEEDED[3]])
def test_rows_that_load_again_differ_without_a_seed(runner: RunnerProcess, code: str, used: str) -> None:
    assert len(set(numbers(runner, THREADS + code, used))) == 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("code", "used", "first"), [SEEDED[0], SEEDED[3]])
def test_rows_of_a_batch_get_a_sequence(runner: RunnerProcess, code: str, used: str, first: Any) -> None:
    found = numbers(runner, code, used, share="a")
    assert found[0] == first
    assert len(set(found)) == 4


def test_a_seed_holds_after_imports_ahead(start: Any) -> None:
    runner = start("--packages", str(Path(importlib.util.find_spec("numpy").origin).parents[1]))
    limits = {name: LIMITS[name] for name in ("memory_mb", "processes", "disk_mb")}
    runner.send({"type": "prepare", "id": "p", "modules": ["numpy"], "timeout_s": 20, "limits": limits})
    assert runner.receive().header["ready"] is True
    assert_seeded(numbers(runner, "import numpy; numpy.random.seed(42)", "numpy.random.rand()"), 0.3745401188473625)


def test_a_process_that_a_row_forks_has_other_numbers(runner: RunnerProcess) -> None:
    code = """
import os, random
random.seed(42)
def evaluate(inputs, outputs, trace):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(random.random()).encode())
        os._exit(0)
    os.wait()
    return [random.random(), float(os.read(read, 100))]
"""
    runner.load(code)
    (first, other), (second, another) = (body(runner.call({}, 1, None))["value"] for _ in range(2))
    assert first == second == 0.6394267984578837
    assert len({first, other, another}) == 3


def test_the_modules_are_those_of_python_in_a_row(runner: RunnerProcess) -> None:
    code = "import random, sys" + ENTRY
    used = "[random.Random.seed.__globals__['__name__'], random.__loader__ is random.__spec__.loader, random.__file__[-9:], any(hasattr(one, 'forks_rows') for one in sys.meta_path)]"
    assert numbers(runner, code.removesuffix(ENTRY), used)[0] == ["random", True, "random.py", False]
