"""Makes copies of the Python runner without some of its guards, by replacing lines."""

import shutil
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from evaluator_host.engine.config import settings as config
from evaluator_host.selftest.attack import Guard

_IMPORTS_LATE: Final = """
            value = _call(self._call, args, body)
            import json
"""
_ENDS_AS_PROGRAMS_DO: Final = """
def _end_as_programs_do():
    import atexit
    atexit._run_exitfuncs()


"""
_OWN_BUILTINS: Final = "from evaluator_runner.builtins_copy import BUILTINS as __builtins__"

# (file of evaluator_runner, text, replacement); the test fails if the text is no longer there
EDITS: Final[dict[Guard, tuple[tuple[str, str, str], ...]]] = {
    Guard.CHANNEL: (
        ("guest_setup.py", "        os.closerange(low + 1, high)\n", "        pass\n"),
        ("guest_setup.py", "        _dup2(saved, fd)\n", "        _dup2(11 if fd == 1 else saved, fd)\n"),
        ("kernel.py", "_prctl(_PR_SET_DUMPABLE, int(inspectable))", "_prctl(_PR_SET_DUMPABLE, 1)"),
    ),
    Guard.CLEANING: (
        ("supervisor.py", "            self.scratch.wipe()\n", "            pass\n"),
        ("supervisor.py", 'return "files" if', 'return None and "files" if'),
        ("survivors.py", "    for _ in range(_TRIES):", "    return True\n    for _ in range(_TRIES):"),
        ("handles.py", "            os.killpg(self.pid, _SIGKILL)", "            kernel_kill(self.pid)"),
        ("guest_setup.py", '        return "memory"\n', "        return None\n"),
    ),
    Guard.GATE: (
        ("supervisor.py", "            self.relay.end_row()\n", "            pass\n"),
        ("relay.py", " or not self._is_open()", ""),
    ),
    Guard.ANSWERS: (
        ("handles.py", " or length > self._answer_bytes", ""),
        ("rows.py", 'raise ValueError("a process sent a result without a request")', "return"),
        ("row.py", "if _getpid() != self._pid:", "if False:"),
        ("zygote.py", "if _getpid() != pid:", "if False:"),
    ),
    Guard.STREAMS: (
        (
            "guest_setup.py",
            "    return _streams[0].flush(), _streams[1].flush()",
            "    sys.stdout.flush()\n    return 0, 0",
        ),
        ("row.py", "self._flush() if _wrote else (0, 0)", "self._flush()"),
        ("zygote.py", "_set_blocking(1, True)", "pass"),
        ("zygote.py", "_set_blocking(2, True)", "pass"),
        ("logs.py", '"utf-8", "replace")', '"utf-8", "surrogateescape")'),
        ("loading.py", "supervisor.watch(stream.fd, stream.read)", "pass"),
        (
            "row.py",
            "        send(self._sock, self._reply())\n",
            "        reply = self._reply()\n        _end_as_programs_do()\n        send(self._sock, reply)\n",
        ),
        ("row.py", "def send(", _ENDS_AS_PROGRAMS_DO + "def send("),
    ),
    Guard.ENCODING: (
        ("encode.py", "_LEVELS = 64", "_LEVELS = 10**9"),
        ("encode.py", "        if id(value) in self._open:", "        if False:"),
        ("encode.py", "-_FLOAT_LIMIT < value < _FLOAT_LIMIT", "True"),
        ("encode.py", "-_INT_LIMIT < value < _INT_LIMIT", "True"),
        ("encode.py", "value = jsontext.scalar_text(value)", "pass"),
        (
            "encode.py",
            "        except BaseException:  # noqa: BLE001 - a user's __str__ may raise anything",
            "        except ImportError:",
        ),
        ("encode.py", "kind = type(value)\n        if kind is str:", "kind = value.__class__\n        if kind is str:"),
        ("encode.py", "        if isinstance(key, str):", "        return key\n        if isinstance(key, str):"),
        ("coerce.py", "str.__str__(value)", "str(value)"),
        ("coerce.py", "float.__float__(value)", "float(value)"),
        ("coerce.py", "dict(dict.items(value))", "dict(value.items())"),
    ),
    Guard.PRISTINE: (
        *((name, _OWN_BUILTINS, "import builtins as _unused") for name in ("row.py", "encode.py", "guest_setup.py")),
        ("interpreter_hooks.py", "_settrace(None)", "pass"),
        ("row.py", "\n            value = _call(self._call, args, body)\n", _IMPORTS_LATE),
    ),
}


def edit_runner(guards: AbstractSet[Guard], copy: Path) -> None:
    """Remove these guards from a copy of the runner."""
    shutil.copytree(config.RUNTIMES_DIR / "python", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for guard in guards & EDITS.keys():
        for name, text, instead in EDITS[guard]:
            file = copy / "evaluator_runner" / name
            source = file.read_text()
            assert text in source, f"{name} has changed: {text!r} is not in it; adapt tests/attacks/weakened_runner.py"
            file.write_text(source.replace(text, instead))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o777 if Guard.READ_ONLY in guards else 0o755)
