"""Each exit status of a sandbox gives the right error code. The texts on standard error were recorded from real
engines.
"""

import signal

import pytest

from evaluator_host.engine.sandbox.exit_status import ExitStatus, classify_exit
from evaluator_host.types.outcome import ErrorCode

V8_HEAP = """
<--- Last few GCs --->
[2:0x55d0c8b7f000]      412 ms: Mark-Compact 123.4 (130.2) -> 122.9 (130.5) MB, pooled: 0 MB, 98.41 / 0.00 ms

FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory
----- Native stack trace -----
"""
V8_RESERVE = "#\n# Fatal process out of memory: Failed to reserve virtual memory for CodeRange\n#\n"


@pytest.mark.parametrize(
    ("exit_status", "code"),
    [
        (ExitStatus(exit_code=0), ErrorCode.CRASHED),
        (ExitStatus(exit_code=3, stderr_tail="runner: the host sent no frame"), ErrorCode.CRASHED),
        (ExitStatus(signal=signal.SIGKILL), ErrorCode.CRASHED),
        (ExitStatus(signal=signal.SIGSEGV), ErrorCode.CRASHED),
        (ExitStatus(), ErrorCode.CRASHED),
        (ExitStatus(signal=signal.SIGKILL, oom_killed=True), ErrorCode.MEMORY_LIMIT),
        (ExitStatus(signal=signal.SIGABRT, stderr_tail=V8_HEAP), ErrorCode.MEMORY_LIMIT),
        (ExitStatus(signal=signal.SIGTRAP, stderr_tail=V8_RESERVE), ErrorCode.MEMORY_LIMIT),
        (ExitStatus(signal=signal.SIGILL, stderr_tail=V8_RESERVE), ErrorCode.MEMORY_LIMIT),
        (ExitStatus(exit_code=134, stderr_tail=V8_HEAP), ErrorCode.MEMORY_LIMIT),
        (ExitStatus(signal=signal.SIGABRT, stderr_tail="Assertion failed: fd > 0"), ErrorCode.CRASHED),
        # here the program itself printed that text and ended
        (ExitStatus(exit_code=1, stderr_tail=V8_HEAP), ErrorCode.CRASHED),
        (ExitStatus(exit_code=1, pids_hit=True), ErrorCode.PROCESS_LIMIT),
        (ExitStatus(exit_code=72, stderr_tail="runner: no process may start another one"), ErrorCode.SANDBOX_LOST),
        (ExitStatus(exit_code=72, pids_hit=True), ErrorCode.PROCESS_LIMIT),
        (ExitStatus(signal=signal.SIGKILL, oom_killed=True, pids_hit=True), ErrorCode.MEMORY_LIMIT),
        (ExitStatus(lost=True), ErrorCode.SANDBOX_LOST),
        (ExitStatus(signal=signal.SIGKILL, lost=True, pids_hit=True), ErrorCode.SANDBOX_LOST),
    ],
)
def test_an_exit_status_gives_the_right_error_code(exit_status, code):
    assert classify_exit(exit_status, memory_mb=256)[0] is code


@pytest.mark.parametrize(
    ("exit_status", "words"),
    [
        (ExitStatus(oom_killed=True), ["512 MB", "limits.memory_mb"]),
        (ExitStatus(pids_hit=True), ["limits.processes"]),
        (ExitStatus(exit_code=7), ["code 7"]),
        (ExitStatus(signal=signal.SIGSEGV), ["SIGSEGV"]),
        (ExitStatus(signal=200), ["signal 200"]),
        (ExitStatus(), ["connection"]),
        (ExitStatus(lost=True), ["try again"]),
    ],
)
def test_message_says_what_happened_and_what_to_do(exit_status, words):
    message = classify_exit(exit_status, memory_mb=512)[1]
    assert all(word in message for word in words), message
