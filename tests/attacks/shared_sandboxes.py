"""Puts attacks with the same language and limits into one evaluator; each of its rows runs one attack. With an
evaluator for each attack, most of the time would go into starting sandboxes.

An attack can share its sandbox if it acts only in its row: the same guards then stop it as in a separate sandbox. Three
kinds of attacks stay separate evaluators: attacks that act while they are loaded, through their source code, or on
another sandbox; attacks on the channel to the host, which must be the first row; and attacks that fill memory or start
many processes, because the kernel's counters include earlier rows.
"""

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.types.evaluator import Isolation, Language
from evaluator_host.types.outcome import ErrorCode

_OF_ITS_OWN: Final = {
    Group.SOURCE,
    Group.NEIGHBOURS,
    Group.GATEWAY,
    Group.HOST,
    Group.CHANNEL,
    Group.MEMORY,
    Group.PROCESSES,
}
_FILL_MEMORY: Final = {ErrorCode.MEMORY_LIMIT, ErrorCode.RESULT_TOO_LARGE}
_PYTHON: Final = """\
PROGRAMS = {{
{programs}}}

def evaluate(inputs, outputs, trace):
    program = {{"__name__": "attack"}}
    exec(compile(PROGRAMS[inputs["attack"]], "attack", "exec"), program)
    return program["evaluate"](inputs, outputs, trace)
"""
_JAVASCRIPT: Final = """\
const programs = {{
{programs}}};
function evaluate(inputs, outputs, trace) {{
  return programs[inputs.attack]()(inputs, outputs, trace);
}}
"""


def in_shared_sandboxes(attacks: Sequence[Attack]) -> list[Attack]:
    """Return the attacks in the same order; those that can share a sandbox get the same code."""
    shared: dict[tuple[object, ...], list[Attack]] = {}
    for attack in filter(acts_in_a_row_alone, attacks):
        shared.setdefault((attack.language, attack.limits), []).append(attack)
    codes = {one.name: code for together in shared.values() for code in [evaluator_of(together)] for one in together}
    return [replace(attack, code=codes.get(attack.name, attack.code)) for attack in attacks]


def acts_in_a_row_alone(attack: Attack) -> bool:
    """Whether an attack acts only in its row, so that it can share a sandbox."""
    if attack.isolation is Isolation.BATCH or attack.witness is not None or attack.data or attack.group in _OF_ITS_OWN:
        return False
    if any(_FILL_MEMORY & set(one.codes) for one in attack.expected):
        return False
    if attack.language is Language.PYTHON:
        return not any(map(_acts, ast.parse(attack.code).body))
    return attack.language is Language.JAVASCRIPT


def _acts(statement: ast.stmt) -> bool:
    """Whether a statement does something when the module is loaded. Definitions and strings do nothing."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.For | ast.While | ast.Try | ast.If | ast.With)


def evaluator_of(attacks: Sequence[Attack]) -> str:
    """Return an evaluator that runs the attack named in `inputs["attack"]`."""
    if attacks[0].language is Language.PYTHON:
        return _PYTHON.format(programs="".join(f"    {one.name!r}: {one.code!r},\n" for one in attacks))
    programs = (f"'{one.name}': () => {{\n{one.code}\nreturn evaluate;\n}},\n" for one in attacks)
    return _JAVASCRIPT.format(programs="".join(programs))
