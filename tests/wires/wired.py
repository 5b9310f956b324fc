"""Runs hosts with wires, for the tests of all wires, and sends the dialects' cases through wires."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.dialects.cases import ANY, NativeCase
from tests.server import FORKED, Server

SECRET = "a secret of sixteen characters"
ENDLESS = "__import__('time').sleep(60)"
"""Code that runs until the wire's time limit without using processor time; Langfuse's tests have a busy loop."""


@contextmanager
def wired(
    folder: Path, *names: str, environment: dict[str, str] | None = None, **options: dict[str, Any]
) -> Iterator[Server]:
    """Run a host that serves these wires; each wire's options are given by the wire's name."""
    given = {
        **FORKED,
        "EVALUATOR_HOST_WIRES": ",".join(names),
        "EVALUATOR_HOST_WIRE_OPTIONS": json.dumps(options),
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder / 'host.db'}",
        **(environment or {}),
    }
    with Server(log=folder / "log", environment=given) as server:
        yield server


def cases_of(dialect: str) -> list[NativeCase]:
    """Return the cases of a dialect that its platform can send: the row has the platform's own format, and the settings
    do not choose a score.
    """
    found: list[NativeCase] = import_module(f"tests.dialects.{dialect}.cases").CASES
    sendable = [case for case in found if case.row.variables is not None and not case.packages]
    return [case for case in sendable if case.settings.score_output is None]


def sent(case: NativeCase) -> str:
    """Return the code of a case as its platform sends it."""
    return dedent(case.code).lstrip("\n")


def differing(
    cases: list[NativeCase], answers: list[tuple[Any, bool]], what: Callable[[NativeCase], bool] = lambda _: True
) -> list[str]:
    """Return a message for each answer that differs from what its case expects.

    Args:
      cases: The cases that were sent.
      answers: For each case, the objects that the platform would store, and whether the platform would show an error.
      what: Function that returns whether a case is compared.
    """
    found = []
    for case, (native, failed) in zip(cases, answers, strict=True):
        if failed != (case.status == "failed"):
            found.append(f"{case.id}: failed {failed}, expected {case.status}: {native}")
        elif what(case) and not failed and case.native is not ANY and native != case.native:
            found.append(f"{case.id}: {native}, expected {case.native}")
    return found
