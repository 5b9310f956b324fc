"""`Program`: a program to run once. `ScriptResult`: its exit code and output.

All Python programs are rows of the same evaluator; the code of a program is in its row. So a new program starts in a
sandbox that is already running, but in a separate process, like every row. JavaScript is compiled when it is loaded, so
each JavaScript program becomes a separate evaluator.
"""

from dataclasses import dataclass, field
from typing import Final

from evaluator_host.types.evaluator import Contract, Evaluator, Json, Language, Limits, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult

_CARRIER: Final = "# the program comes with each row\n"
_FAILED: Final = frozenset({ErrorCode.USER_EXCEPTION, ErrorCode.LOAD_ERROR, ErrorCode.SYNTAX_ERROR})


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run once.

    Attributes:
      code: Source of the program.
      argv: Command-line arguments, without the program's name.
      env: Environment variables to add to the sandbox's own variables.
      stdin: Text for standard input.
      files: Contents of further files, keyed by path.
    """

    code: str
    language: Language = Language.PYTHON
    packages: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    stdin: str = ""
    python: str | None = None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator that runs this program."""
        return Evaluator(
            _CARRIER if self.language is Language.PYTHON else self.code,
            language=self.language,
            contract=Contract.SCRIPT,
            packages=self.packages,
            limits=self.limits,
            python=self.python,
            files=self.files,
        )

    @property
    def row(self) -> Row:
        """The row with which the evaluator runs this program."""
        variables: dict[str, Json] = {"argv": list(self.argv), "env": self.env, "stdin": self.stdin}
        if self.language is Language.PYTHON:
            variables["code"] = self.code
        return Row(variables=variables)


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """Exit code, output and files of a program.

    Attributes:
      exit_code: Exit code; None if a time or memory limit, or a fault of the host, ended the program.
      stdout: Standard output, truncated at `limits.log_kb`.
      stderr: Standard error, also truncated at `limits.log_kb`; an exception's traceback is at its end.
      truncated: Whether `stdout` or `stderr` was truncated.
      error: Why there is no exit code; None if there is an exit code.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    truncated: bool
    error: EvaluationError | None


def script_result(found: EvaluationResult | EvaluationError) -> ScriptResult:
    """Read a program's exit code and output from the result of its row."""
    if isinstance(found, EvaluationError):
        return ScriptResult(None, "", "", truncated=False, error=found)
    logs, error = found.logs, found.error
    if error is None:
        return ScriptResult(int(found.native[0]["exit_code"]), logs.stdout, logs.stderr, logs.truncated, None)
    if (status := _exit_status(error)) is not None:
        return ScriptResult(status, logs.stdout, logs.stderr, logs.truncated, None)
    if error.code in _FAILED:  # a JavaScript program that throws ends with code 1, as in Python
        told = error.traceback or f"{error.type or 'Error'}: {error.message}\n"
        return ScriptResult(1, logs.stdout, f"{logs.stderr}{told}", logs.truncated, None)
    return ScriptResult(None, logs.stdout, logs.stderr, logs.truncated, error)


def _exit_status(error: EvaluationError) -> int | None:
    """Return the code with which a program ended its process (`os._exit`), or None."""
    if error.code is not ErrorCode.CRASHED:
        return None
    words = error.message.replace(",", " ").replace(";", " ").replace(":", " ").split()
    at = next((at for at, word in enumerate(words) if word in ("code", "status")), None)
    known = at is not None and at + 1 < len(words) and words[at + 1].isdecimal()
    return int(words[at + 1]) & 255 if known and at is not None else None
