"""Runs whole programs (dialect `script`): the code runs from its first to its last line for each row.

The program is the evaluator's code, or is part of the row, so that rows with different programs can share a sandbox. A
program gets arguments, environment variables and a standard input; its result is its exit code and its output.
"""

from __future__ import annotations

import io
import os
import sys

from evaluator_runner import entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "script"
WORDS = ()
PREBOUND = False
_FILENAME = "<string>"
_Module = type(sys)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Return None, because a script is never recognised by its code: its contract must be declared."""
    return None


def source(code: str) -> str:
    """Return no code, because nothing is run when the code is loaded."""
    return ""


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that runs the program.

    Raises:
      Failure: the policy is `restricted`, which does not allow programs.
    """
    if "_getattr_" in namespace:
        raise Failure("policy_violation", "a script cannot run under the policy restricted")
    text = namespace["__loader__"].get_source("evaluator")
    found = entry.Entry("script", lambda row: _run(row, text, namespace["__builtins__"]))
    found.reason = "declared"
    found.bind = lambda args: ([args[0]], {})
    return found


def _run(row: dict[str, Any], text: str, names: Any) -> dict[str, int]:
    code = row.get("code")
    sys.argv[:] = ["script.py", *row.get("argv", ())]
    os.environ.update(row.get("env", {}))
    _give_input(row.get("stdin", ""))
    main = _Module("__main__")
    main.__dict__.update({"__builtins__": names})
    sys.modules["__main__"] = main
    try:
        exec(compile(text if code is None else code, _FILENAME, "exec", dont_inherit=True), main.__dict__)  # noqa: S102
        _join()
    except SystemExit as ended:
        return {"exit_code": _status(ended.code)}
    except BaseException as raised:  # noqa: BLE001 - any exception may end a program
        trace = raised.__traceback__
        trace = None if trace is None else trace.tb_next  # leaves this function out of the traceback
        sys.__excepthook__(type(raised), raised.with_traceback(trace), trace)
        return {"exit_code": 1}
    return {"exit_code": 0}


def _give_input(text: str) -> None:
    """Make descriptor 0 and `sys.stdin` read this text from its start."""
    path = f"/tmp/.input-{os.getpid()}"  # noqa: S108 - the sandbox's own /tmp
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    with open(held, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "surrogatepass"))
    os.lseek(held, 0, os.SEEK_SET)
    os.dup2(held, 0)
    os.close(held)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), "utf-8", "surrogatepass")
    sys.__stdin__ = sys.stdin  # type: ignore[misc]


def _join() -> None:
    """Wait for the threads that the program has started, as Python does when a program ends."""
    threading = sys.modules.get("threading")
    if threading is None:
        return
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    print(code, file=sys.stderr)
    return 1
