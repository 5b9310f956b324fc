"""Data in a line of the host's log cannot forge another line or control a terminal."""

import asyncio
import logging
import sys

import pytest

from evaluator_host.platform.http.error_log import CutOff, DataFreeFormatter, LineFormatter, is_news, log_loop_fault

ODD = "x\nERROR evaluator_host.web: the admin key was revoked\x1b]0;title\x07\x1b[2J\u202e\u2028\x85"


@pytest.mark.parametrize("kind", [LineFormatter, DataFreeFormatter])
def test_a_message_is_one_line_of_printable_characters(kind: type[logging.Formatter]) -> None:
    record = logging.LogRecord("evaluator_host.web", logging.WARNING, "", 1, "trace %s was dropped", (ODD,), None)
    line = kind("%(levelname)s %(name)s: %(message)s").format(record)
    assert line.isprintable()
    assert line.startswith("WARNING evaluator_host.web: trace x\\nERROR evaluator_host.web: the admin")
    assert "\\x1b]0;title\\x07\\x1b[2J\\u202e\\u2028\\x85 was dropped" in line


@pytest.mark.parametrize("kind", [LineFormatter, DataFreeFormatter])
def test_the_lines_of_an_exception_are_told_from_other_lines(kind: type[logging.Formatter]) -> None:
    try:
        raise ValueError(ODD)
    except ValueError:
        record = logging.LogRecord("host", logging.ERROR, "", 1, "it failed", (), sys.exc_info())
    first, *others = kind("%(levelname)s %(message)s").format(record).split("\n")
    assert first == "ERROR it failed"
    assert all(line.isprintable() for line in others)
    assert not any(line.startswith("ERROR") for line in others)
    assert any("revoked" in line for line in others) == (kind is LineFormatter)


def test_a_long_message_is_cut() -> None:
    record = logging.LogRecord("host", logging.ERROR, "", 1, "%s", ("x" * 10_000_000,), None)
    assert len(DataFreeFormatter("%(message)s").format(record)) == 4000


@pytest.mark.parametrize(("error", "shown"), [(CutOff(), False), (ValueError(), True), (None, True)])
def test_an_answer_that_was_cut_off_is_not_logged_again(error: Exception | None, shown: bool) -> None:
    fault = None if error is None else (type(error), error, None)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "Exception in ASGI application", (), fault)
    assert is_news(record) is shown


async def _waits_inside() -> None:
    await asyncio.sleep(60)


async def _waits() -> None:
    await _waits_inside()


async def test_a_fault_of_a_task_says_where_it_waits(caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(_waits())
    await asyncio.sleep(0)
    log_loop_fault(asyncio.get_running_loop(), {"message": "Task was destroyed but it is pending!", "task": task})
    assert caplog.messages == ["Task was destroyed but it is pending! _waits > _waits_inside > sleep"]
    task.cancel()
