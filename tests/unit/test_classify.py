"""What the death of a sandbox means; the standard errors are what the engines really print."""

import signal

import pytest

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.sandbox.base import Autopsy
from evaluator_host.sandbox.exit_status import classify

V8_HEAP = """
<--- Last few GCs --->
[2:0x55d0c8b7f000]      412 ms: Mark-Compact 123.4 (130.2) -> 122.9 (130.5) MB, pooled: 0 MB, 98.41 / 0.00 ms

FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory
----- Native stack trace -----
"""
V8_RESERVE = "#\n# Fatal process out of memory: Failed to reserve virtual memory for CodeRange\n#\n"


@pytest.mark.parametrize(
    ("autopsy", "code"),
    [
        (Autopsy(exit_code=0), ErrorCode.CRASHED),
        (Autopsy(exit_code=3, stderr_tail="runner: the host sent no frame"), ErrorCode.CRASHED),
        (Autopsy(signal=signal.SIGKILL), ErrorCode.CRASHED),
        (Autopsy(signal=signal.SIGSEGV), ErrorCode.CRASHED),
        (Autopsy(), ErrorCode.CRASHED),
        (Autopsy(signal=signal.SIGKILL, oom_killed=True), ErrorCode.MEMORY_LIMIT),
        (Autopsy(signal=signal.SIGABRT, stderr_tail=V8_HEAP), ErrorCode.MEMORY_LIMIT),
        (Autopsy(signal=signal.SIGTRAP, stderr_tail=V8_RESERVE), ErrorCode.MEMORY_LIMIT),
        (Autopsy(signal=signal.SIGILL, stderr_tail=V8_RESERVE), ErrorCode.MEMORY_LIMIT),
        (Autopsy(exit_code=134, stderr_tail=V8_HEAP), ErrorCode.MEMORY_LIMIT),
        (Autopsy(signal=signal.SIGABRT, stderr_tail="Assertion failed: fd > 0"), ErrorCode.CRASHED),
        (Autopsy(exit_code=1, stderr_tail=V8_HEAP), ErrorCode.CRASHED),  # it printed that and left by itself
        (Autopsy(exit_code=1, pids_hit=True), ErrorCode.PROCESS_LIMIT),
        (Autopsy(signal=signal.SIGKILL, oom_killed=True, pids_hit=True), ErrorCode.MEMORY_LIMIT),
        (Autopsy(lost=True), ErrorCode.SANDBOX_LOST),
        (Autopsy(signal=signal.SIGKILL, lost=True, pids_hit=True), ErrorCode.SANDBOX_LOST),
    ],
)
def test_code(autopsy, code):
    assert classify(autopsy, memory_mb=256)[0] is code


@pytest.mark.parametrize(
    ("autopsy", "words"),
    [
        (Autopsy(oom_killed=True), ["512 MB", "limits.memory_mb"]),
        (Autopsy(pids_hit=True), ["limits.processes"]),
        (Autopsy(exit_code=7), ["code 7"]),
        (Autopsy(signal=signal.SIGSEGV), ["SIGSEGV"]),
        (Autopsy(signal=200), ["signal 200"]),
        (Autopsy(), ["channel"]),
        (Autopsy(lost=True), ["try again"]),
    ],
)
def test_message_says_what_happened_and_what_to_do(autopsy, words):
    message = classify(autopsy, memory_mb=512)[1]
    assert all(word in message for word in words), message
