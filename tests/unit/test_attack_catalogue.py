"""Every file in the attack catalogue is used and can be parsed, and an error about a mistake names the file."""

import ast
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from evaluator_host.selftest.attack import NOTHING, SMALL, Attack, Expected, Group, Guard
from evaluator_host.selftest.catalogue import ATTACKS_DIR, load_attacks
from evaluator_host.selftest.host import load_host_attacks
from evaluator_host.types.evaluator import Isolation, Language
from evaluator_host.types.outcome import ErrorCode, Status

PROGRAM: Final = "def attack(inputs):\n    return None\n"
TABLE: Final = '[reads]\nwhy = "a guard"\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder of a group of attacks, in a valid catalogue that has one attack."""
    group = tmp_path / "python" / "files"
    group.mkdir(parents=True)
    (tmp_path / "javascript").mkdir()
    (group / "attacks.toml").write_text(TABLE)
    (group / "reads.py").write_text(PROGRAM)
    return group


def loaded(files: Path) -> list[Attack]:
    return list(load_attacks(files.parents[1]))


def test_a_program_and_a_table_are_an_attack(files: Path) -> None:
    [attack] = loaded(files)
    assert (attack.name, attack.group, attack.language) == ("reads", Group.FILES, Language.PYTHON)
    assert (attack.why, attack.expected, attack.limits, attack.calm) == ("a guard", (NOTHING,), SMALL, True)
    assert attack.code.startswith(PROGRAM)
    assert "\ndef evaluate(inputs, outputs, trace):\n" in attack.code


def test_every_key_of_a_table_arrives(files: Path) -> None:
    (files / "attacks.toml").write_text("""
[defaults]
why = "shared"
without = ["root"]

[reads]
expected = [{ status = "failed", codes = ["crashed"], mentions = "x" }, { status = "refused" }]
limits = { timeout_s = 0.5 }
without = []
seen = "never"
calm = false
isolation = "batch"
safe = false

[whole]
""")
    (files / "reads.witness.py").write_text(PROGRAM)
    (files / "whole.py").write_text("def evaluate(inputs, outputs, trace):\n    return 0.25\n")
    reads, whole = loaded(files)
    assert reads.why == "shared"
    assert reads.expected == (Expected(Status.FAILED, codes=(ErrorCode.CRASHED,), mentions="x"), Expected(None))
    assert (reads.limits.timeout_s, reads.limits.memory_mb) == (0.5, SMALL.memory_mb)
    assert (reads.without, reads.seen, reads.calm, reads.safe) == (frozenset(), "never", False, False)
    assert reads.isolation is Isolation.BATCH
    assert reads.witness is not None
    assert reads.witness.startswith(PROGRAM)
    assert (whole.without, whole.calm, whole.witness) == ({Guard.ROOT}, False, None)
    assert whole.code == "def evaluate(inputs, outputs, trace):\n    return 0.25\n"


def test_included_files_and_repeated_texts_are_written_out(files: Path) -> None:
    (files.parent / "include").mkdir()
    (files.parent / "include" / "help.py").write_text("HELP = 1\n")
    (files / "reads.py").rename(files / "reads.py.txt")
    (files / "reads.py.txt").write_text("# include: help.py\nx = {{'(' * 1_000}}{{'\\ud800'}}\n" + PROGRAM)
    [attack] = loaded(files)
    assert attack.code.startswith("HELP = 1\nx = " + "(" * 1000 + "\ud800\ndef attack")


@pytest.mark.parametrize(
    ("file", "text", "named", "told"),
    [
        ("attacks.toml", TABLE + "wihtout = []\n", "attacks.toml", "[reads]: wihtout"),
        ("attacks.toml", TABLE + 'without = ["wall"]\n', "attacks.toml", "[reads]: without"),
        ("attacks.toml", TABLE + 'expected = [{ status = "done" }]\n', "attacks.toml", "[reads]: expected.0.status"),
        ("attacks.toml", TABLE + 'expected = [{ status = "scored", points = 1 }]\n', "attacks.toml", "expected.0.points"),
        ("attacks.toml", TABLE + "limits = { memory = 1 }\n", "attacks.toml", "[reads]: limits"),
        ("attacks.toml", "[reads]\n", "attacks.toml", "[reads]: why"),
        ("attacks.toml", TABLE + "[writes]\n", "attacks.toml", "[writes] needs one program, writes.py"),
        ("attacks.toml", 'why = "a guard"\n', "attacks.toml", "'why' is not a table"),
        ("attacks.toml", "[reads\n", "attacks.toml", "Expected"),
        ("reads.py.txt", PROGRAM, "attacks.toml", "there is reads.py, reads.py.txt"),
        ("reads.py", "x = 1\n", "reads.py", "defines neither `attack(inputs)` nor `evaluate`"),
        ("reads.py", "# include: nothing.py\n" + PROGRAM, "reads.py", "include/nothing.py"),
        ("raeds.py", PROGRAM, "raeds.py", "has no attack of that name"),
        ("../network/reads.py", PROGRAM, "network/attacks.toml", "No such file"),
        ("../netwrok/reads.py", PROGRAM, "netwrok", "no group of that name"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_the_name_of_its_file(
    files: Path, file: str, text: str, named: str, told: str
) -> None:
    (files / file).parent.mkdir(exist_ok=True)
    (files / file).resolve().write_text(text)
    with pytest.raises(ValueError, match=re.escape(str(files.parents[1]))) as raised:
        loaded(files)
    where, _, what = str(raised.value).partition(": ")
    assert where.endswith(named)
    assert told in what


def test_two_attacks_of_one_name_are_a_mistake(files: Path) -> None:
    other = files.parent / "cpu"
    other.mkdir()
    (other / "attacks.toml").write_text(TABLE)
    (other / "reads.py").write_text(PROGRAM)
    with pytest.raises(ValueError, match=r"cpu/attacks\.toml: another group has an attack 'reads' too"):
        loaded(files)


def test_a_program_in_a_py_file_parses_and_none_is_ever_imported() -> None:
    programs = list(ATTACKS_DIR.glob("python/*/*.py"))
    assert len(programs) > 150
    for program in programs:
        ast.parse(program.read_text(), str(program))
    assert load_attacks()
    assert [name for name in sys.modules if name.startswith("evaluator_host.selftest.attacks")] == []


def test_every_guard_and_every_group_has_an_attack() -> None:
    assert {attack.group for attack in load_attacks()} == set(Group) - {Group.HOST}
    assert {attack.group for attack in load_host_attacks()} == {Group.HOST}
    assert len({attack.name for attack in (*load_attacks(), *load_host_attacks())}) == len(load_attacks()) + len(
        load_host_attacks()
    )
    assert {guard for attack in load_attacks() for guard in attack.without} == set(Guard)
