"""Converts failures of user code to the protocol's `error`: an error code, and a hint for the author."""

from __future__ import annotations

import sys

from evaluator_runner import tracebacks
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ONLY_AST = 0x400
_EAGAIN = 11
_NO_ROOM = ("failed to map segment from shared object", "cannot map zero-fill pages", "cannot allocate memory")
_NO_SPACE = {27, 28, 122}  # the error numbers EFBIG, ENOSPC and EDQUOT
_MESSAGE_CHARS = 4096
_PREBOUND_HINT = "add `import {name}` at the top"
_JAVASCRIPT = (  # beginnings of lines that occur in JavaScript but not in Python
    r"^[ \t]*(?:(?:export +(?:default +)?)?(?:async +)?function\b *\w* *\(|"
    r"(?:export +)?(?:const|let|var) +[\w{\[][^=\n]*=|import *[{*]|import [^#\n]*\bfrom +[\"']|"
    r"(?:export +)?(?:interface|enum) +\w+ *\{)"
)
_NEW_SYNTAX = r"[ \t]*(?:(?:async +)?def +\w+\[|class +\w+\[|type +\w+ *(?:\[.*\] *)?=)"
"""Syntax for type parameters and `type` statements."""
_FIX_HINTS = {
    True: "the code lost its indentation, which can be restored in only one way: check returns the restored code as "
    "`fix`, and with settings.repair the host runs that code",
    False: "the code lost its indentation, which can be restored in several ways: take one that check returns, "
    "or paste the code again",
}
_TYPOGRAPHIC = "\u2018\u2019\u201c\u201d"
_ARGUMENTS = {"inputs", "outputs", "output", "trace", "app_params", "correct_answer"}
_UNREACHABLE = {-3, -2, 101, 111, 113}  # errors EAI_AGAIN, EAI_NONAME, ENETUNREACH, ECONNREFUSED, EHOSTUNREACH
_READ_ONLY = 30


class Failure(Exception):
    """A failure that the runner detected, rather than an exception of user code.

    Attributes:
      equal: Names of the possible evaluators, if there are several with one contract.
      shown: A list of the possible evaluators as text for people, with parameters and lines.
      notes: Remarks on these evaluators.
      uses: The evaluators that run only if the row has all their columns, each with the names that it uses.
      instead: Whether the evaluators in `uses` run only if the row lacks a column for each of the other evaluators.
    """

    equal: tuple[str, ...] = ()
    shown: str = ""
    notes: tuple[dict[str, str], ...] = ()
    uses: dict[str, set[str]] | None = None
    instead: bool = False

    def __init__(
        self, code: str, message: str, *, hint: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column


class PolicyViolation(Exception):
    """The restricted policy does not allow this operation."""


class ForbiddenImport(ImportError, PolicyViolation):
    """The restricted policy does not allow this import."""


class ForbiddenAttribute(AttributeError, PolicyViolation):
    """The restricted policy does not allow access to this attribute."""


def error(code: str, message: str, **fields: Any) -> dict[str, Any]:
    """Return a protocol `error` with all its fields; fields that are not given are None."""
    known = dict.fromkeys(("type", "line", "column", "traceback", "hint"))
    return {"code": code, "message": message[:_MESSAGE_CHARS], **known, **fields}


def from_failure(failure: Failure) -> dict[str, Any]:
    """Return the `error` for a `Failure`."""
    return error(failure.code, failure.message, hint=failure.hint, line=failure.line, column=failure.column)


def from_exception(raised: BaseException, lines: list[str], *, general: str) -> dict[str, Any]:
    """Return the `error` for an exception of user code.

    `general` is the error code for exceptions without a specific code.
    """
    if issubclass(type(raised), Failure):  # `isinstance` would trust a forged `__class__`
        return from_failure(raised)  # type: ignore[arg-type]
    code, hint = _classify(raised, general)
    line, column = tracebacks.position(raised, lines)
    hint = _hint_on_place(raised, lines, line) or hint
    return error(
        code,
        _message(raised, general),
        type=tracebacks.name_of(raised),
        line=line,
        column=column,
        traceback=tracebacks.render(raised, lines),
        hint=hint,
    )


def _hint_on_place(raised: BaseException, lines: list[str], line: int | None) -> str | None:
    kind = type(raised)
    if line is None and issubclass(kind, TypeError) and tracebacks.text_of(raised).startswith("unhashable type"):
        return (
            "a cached function cannot take a dict, but rows contain dicts: cache a function that takes text or numbers"
        )
    if (
        issubclass(kind, FileNotFoundError)
        and (frame := tracebacks.raising_frame(raised, "/subprocess.py")) is not None
    ):
        name = raised.filename  # type: ignore[attr-defined]
        return None if name == frame.f_locals.get("cwd") else f"the sandbox has no command {name}"
    if (
        line is not None
        and issubclass(kind, ImportError)
        and tracebacks.text_of(raised).startswith("attempted relative")
    ):
        return _own_module(lines, line)
    reads = issubclass(kind, (IndexError, ValueError)) and line is not None and _reads_argv(lines, line)
    if reads or (issubclass(kind, SystemExit) and tracebacks.raising_frame(raised, "/argparse.py") is not None):
        return (
            "an evaluator gets no command-line arguments: write `def get_assert(output, context)`, or "
            "`def evaluate(inputs, outputs, trace)`"
        )
    return None


def _reads_argv(lines: list[str], line: int) -> bool:
    return any("argv" in {getattr(one, "attr", None), getattr(one, "id", None)} for one in _nodes_in(lines, line))


def _own_module(lines: list[str], line: int) -> str | None:
    """If a line has a relative import, return advice to send the imported file. Otherwise return None."""
    for one in _nodes_in(lines, line):
        if type(one).__name__ == "ImportFrom" and one.level:
            name = one.module or one.names[0].name
            inner = "inner/" * (one.level - 1)
            file, path = f"evals/{name.replace('.', '/')}.py", f"evals/{inner}score.py"
            return (
                f"{'.' * one.level}{name} is a file of yours: send it in `files`, and say in `path` where the code "
                f'is (`files` {{"{file}": "…"}}, `path` "{path}"), or import it by its name alone'
            )
    return None


def _nodes_in(lines: list[str], line: int) -> Iterator[Any]:
    from evaluator_runner.imports import children

    try:
        nodes: list[Any] = [compile("\n".join(lines), "<place>", "exec", _ONLY_AST, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while nodes:
        node = nodes.pop()
        if getattr(node, "lineno", None) == line:
            yield node
        nodes.extend(children(node))


def from_syntax(raised: BaseException, lines: list[str], *, fix: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the `error` for code that does not compile; `fix` is a guess at the intended code."""
    if not isinstance(raised, SyntaxError):
        message = {
            ValueError: "the code contains a null byte",
            UnicodeEncodeError: "the code contains half of a surrogate pair, which is not a character",
        }.get(type(raised), "the code is nested too deeply for the parser")
        return error("syntax_error", message, type=tracebacks.name_of(raised))
    line = raised.lineno if isinstance(raised.lineno, int) and raised.lineno > 0 else None
    column = raised.offset if isinstance(raised.offset, int) and raised.offset > 0 else None
    return error(
        "syntax_error",
        raised.msg or "invalid syntax",
        type=tracebacks.name_of(raised),
        line=line,
        column=column if line is not None else None,
        traceback=tracebacks.render_syntax(raised, lines),
        hint=_syntax_hint(raised, lines) if fix is None else _FIX_HINTS[fix["unique"]],
        **({} if fix is None else {"fix": fix}),
    )


def _syntax_hint(raised: SyntaxError, lines: list[str]) -> str | None:
    """Return a hint for a syntax error (code in another language, characters that a paste changed or lost), or None."""
    import re  # this import takes 5 ms, so it is done only after an error

    text = "\n".join(lines)
    if re.search(_JAVASCRIPT, text, re.MULTILINE):
        return "if this is JavaScript or TypeScript, set `language` to javascript or typescript"
    line = lines[raised.lineno - 1] if raised.lineno and raised.lineno <= len(lines) else ""
    message = raised.msg or ""
    if "expected an indented block" in message:
        return "if the code lost its indentation when it was copied, copy it again from its source"
    if "outside function" in message:
        return "put the code into `def evaluate(inputs, outputs, trace):`"
    if line.lstrip().startswith((">>> ", "... ")):
        return "leave out the prompts of the interactive interpreter, >>> and ..."
    if sys.version_info < (3, 12) and (message.startswith("f-string: ") or re.match(_NEW_SYNTAX, line)):
        return 'if this syntax is from Python 3.12 or later, ask for that version: "python": "3.12"'
    if any(quote in line for quote in _TYPOGRAPHIC):
        return "replace typographic quotes with straight ones, \" or '"
    return None


def _message(raised: BaseException, general: str) -> str:
    text = tracebacks.text_of(raised)
    if (pin := _pin_for(raised)) is not None:
        package = pin.partition("==")[0]
        lacks = f"without the pin {pin} a sandbox has only the parts of {package} that most evaluators use"
        text = f"{text.partition(' (')[0]}; {lacks}"
    if issubclass(type(raised), SystemExit):
        return f"sys.exit({text}) was called" + (" at module level" if general == "load_error" else "")
    return text or tracebacks.name_of(raised)


def _classify(raised: BaseException, general: str) -> tuple[str, str | None]:
    kind = type(raised)
    if issubclass(kind, MemoryError):
        return "memory_limit", "use less memory at once, or raise limits.memory_mb"
    if issubclass(kind, (ImportError, OSError)) and (unmapped := _unmapped(raised)) is not None:
        return "memory_limit", unmapped
    if issubclass(kind, PolicyViolation):
        return "policy_violation", None
    if _is_process_limit(raised):
        return "process_limit", "start fewer threads and processes, or raise limits.processes"
    if issubclass(kind, OSError) and raised.errno in _NO_SPACE:  # type: ignore[attr-defined]
        return "disk_limit", "write less, or raise limits.disk_mb"
    return general, _hint(raised, general) or _hint_on_memory(kind)


def _hint_on_memory(kind: type) -> str | None:
    """Return advice if an exception of this kind probably means that an extension ran out of memory, else None."""
    if not issubclass(kind, (SystemError, ImportError)) or issubclass(kind, ModuleNotFoundError):
        return None
    from evaluator_runner.libraries import is_memory_short

    if not is_memory_short():
        return None
    return "the memory of the sandbox is nearly used up, which may be the cause: raise limits.memory_mb"


def _unmapped(raised: BaseException) -> str | None:
    """Return advice if the exception says that a library does not fit into the memory limit. Otherwise return None."""
    text = tracebacks.text_of(raised)
    if not any(one in text for one in _NO_ROOM):
        return None
    from evaluator_runner.libraries import needed_mb

    needed = needed_mb(text.partition(": ")[0], getattr(raised, "path", None))
    if needed is None:
        return "a library does not fit into the memory of the sandbox: raise limits.memory_mb"
    return f"a library does not fit into the memory of the sandbox: raise limits.memory_mb to over {needed}"


def _is_process_limit(raised: BaseException) -> bool:
    kind = type(raised)
    if issubclass(kind, BlockingIOError):
        return raised.errno == _EAGAIN  # type: ignore[attr-defined, no-any-return]
    return issubclass(kind, RuntimeError) and "can't start new thread" in tracebacks.text_of(raised)


def _pin_for(raised: BaseException) -> str | None:
    """Return the pin of a package if the exception is about a name that its light module lacks, else None."""
    root, _, rest = _missing(raised).partition(".")
    stand_in = sys.modules.get(root)
    # the keys are submodules, because several distributions may share a module
    pins = getattr(stand_in, "__pins__", {})
    pin = pins.get(rest.partition(".")[0], getattr(stand_in, "__pin__", None))
    return pin if isinstance(pin, str) else None


def _missing(raised: BaseException) -> str:
    """Return the dotted name that an import error or attribute error is about, or "" for any other exception."""
    if issubclass(type(raised), AttributeError):
        module, name = getattr(getattr(raised, "obj", None), "__name__", None), getattr(raised, "name", None)
    elif issubclass(type(raised), ImportError):
        module = getattr(raised, "name", None)
        name = [*tracebacks.text_of(raised).split("'"), ""][1]  # `name_from` only exists in Python 3.12 and later
    else:
        return ""
    return f"{module}.{name}" if isinstance(module, str) else ""


def _hint(raised: BaseException, general: str) -> str | None:
    kind = type(raised)
    if (pin := _pin_for(raised)) is not None:
        return f"add {pin} to `packages`"
    if issubclass(kind, SystemExit):
        return "return a score instead of exiting" if general == "user_exception" else "remove the exit at module level"
    if issubclass(kind, ModuleNotFoundError):
        return "pin the package that provides it in `packages`, exactly: name==version; your own module goes in `files`"
    if issubclass(kind, NameError):
        name = getattr(raised, "name", None)
        if isinstance(name, str) and name in _importable():
            return _PREBOUND_HINT.format(name=name)
        if general == "load_error" and isinstance(name, str) and name in _ARGUMENTS:
            return "a row exists only inside `def evaluate(inputs, outputs, trace):`; put the code there"
    if issubclass(kind, EOFError) and "EOF when reading a line" in tracebacks.text_of(raised):
        return "input() gets no answer here; take what the evaluator needs from inputs"
    return _os_hint(raised) if issubclass(kind, OSError) else None


def _os_hint(raised: BaseException) -> str | None:
    reason = getattr(raised, "reason", None)  # urllib wraps the OSError in a URLError
    number = getattr(reason if isinstance(reason, OSError) else raised, "errno", None)
    if not isinstance(number, int):
        return None
    if number in _UNREACHABLE:
        return "an evaluator has no network; put what the code needs into the row"
    return "only files below /tmp can be written, and only until the row ends" if number == _READ_ONLY else None


def _importable() -> frozenset[str]:
    from evaluator_runner.prebound import NAMES

    return NAMES
