"""Messages of the runner protocol: builds `prepare` and `load`, and checks a runner's answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator_host.engine.sandbox.protocol import Frame, ProtocolError
from evaluator_host.types.evaluator import Contract, Json, Language, Limits, Policy, SandboxSpec
from evaluator_host.types.json_values import (
    VALUE_DEPTH,
    decode_json,
    encode_json,
    is_small,
    memory_bytes,
    nests_within,
)
from evaluator_host.types.outcome import (
    ErrorCode,
    EvaluationError,
    EvaluatorClass,
    Failed,
    Fix,
    FixCandidate,
    FunctionFacts,
    Kind,
    Loaded,
    Logs,
    MissingImport,
    Note,
    Outcome,
    ParameterFacts,
    ReadFacts,
    Returned,
)
from evaluator_host.types.warnings import remedy_of

_LONGEST_MS = 1e9  # from this value on (eleven days), a duration that a runner reports is not believed
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_CLASSES = _FUNCTIONS = 100
_NAMES, _NAME_CHARS = 20, 80  # maximum number of parameter names and keys in facts, and of characters in each
_READS = 500
_UNSET, _NOT_LOADED, _KEY_CHARS = 20, 50, 200
# maximum number of values and characters in the facts about loaded code; the host keeps these as long as the sandbox
_LOADED_VALUES, _LOADED_CHARS = 100_000, 8 << 20
_IMPORTS = 1000  # maximum number of imports that are taken from a runner; a check usually finds up to a hundred
# the runner's own limit is `_RUNNER_FACTOR` times the row's limit plus `_RUNNER_LEAST_S`; this exceeds the limits in
# `work_clock`, so that the host stops a row first
_RUNNER_FACTOR, _RUNNER_LEAST_S = 200, 120.0
_RUNNER_MOST_S = 20 * 86400.0  # maximum time limit for a runner, in seconds; a timer of Node takes at most 24 days
_CANDIDATES = 2
# a dict, because the enum class would take longer to find a member by its value
_KINDS = {kind.value: kind for kind in Kind}
_NO_LOGS = Logs()
# message of the runner if SIGKILL has ended the row's process
_KILLED = "the evaluator's process was killed by SIGKILL"
# maximum number of characters in a fix: the runner sends up to 65,536 characters of code, and a diff also has the old
# code
_FIX_CHARS = 1 << 18
# endings of files that code imports; code reads other files as data
_MODULES = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
# maximum number of characters in a string; runners truncate tracebacks to this length, but a guest may forge frames
_TEXT_CHARS = 16_384


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A request to a runner to load an evaluator: its code, how to call it, and its limits."""

    code: str
    language: Language
    contract: Contract
    entry: str | None
    policy: Policy
    limits: Limits
    timeout_s: float  # seconds for the load, as `linux.work_clock` counts them
    check: bool = False  # whether the runner should also list missing imports and describe classes
    bundle: bytes | None = None  # `Loaded.bundle` of an earlier load, so that the same code need not be bundled again
    config: dict[str, Json] = field(default_factory=dict)  # arguments for the evaluator's class
    repair: bool = False  # whether to correct code that does not parse, and load it as it was probably meant
    files: dict[str, str] = field(default_factory=dict)  # contents of the files that come with the code, by path
    path: str | None = None  # path of the code among these files; None if the code is at the root
    # packages of well-known modules that the code names, by module; if such a module is missing but not needed, the
    # runner puts a placeholder in its place
    known: dict[str, str] = field(default_factory=dict)
    # environment variables of the code's processes. `{address}` stands for the loopback address where the runner
    # accepts connections to the host (PROTOCOL.md, `bytes`); it is empty for code that may not connect.
    environment: dict[str, str] = field(default_factory=dict)
    # further environment variables, whose values are masked in everything that comes back from the sandbox
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def header(self, load_id: str) -> dict[str, Json]:
        header = {"data_files": True} if any(not path.endswith(_MODULES) for path in self.files) else {}
        return {
            **header,
            "type": "load",
            "id": load_id,
            "language": self.language,
            "contract": self.contract,
            "entry": self.entry,
            "policy": self.policy,
            "timeout_s": runner_limit_s(self.timeout_s),
            "limits": {
                "memory_mb": self.limits.memory_mb,
                "processes": self.limits.processes,
                "disk_mb": self.limits.disk_mb,
                "log_kb": self.limits.log_kb,
                "result_kb": self.limits.result_kb,
            },
            "check": self.check,
            **({"repair": True} if self.repair else {}),
            **({"environment": self.environment} if self.environment else {}),
            **({"secrets": self.secrets} if self.secrets else {}),
        }

    def body(self) -> bytes:
        """Return the body of the frame, which is JSON."""
        body: dict[str, Json] = {"code": self.code}
        if self.files:
            body |= {"files": self.files, "path": self.path}
        if self.known:
            body["known"] = self.known
        if self.config:
            body["config"] = self.config
        return b'%b,"bundle":%b}' % (encode_json(body)[:-1], self.bundle or b"null")


def prepare_header(prepare_id: str, modules: Sequence[str], *, timeout_s: float, spec: SandboxSpec) -> dict[str, Json]:
    """Return the header of a `prepare` frame, which makes a runner import modules before it loads an evaluator."""
    limits = {"memory_mb": spec.memory_mb, "processes": spec.processes, "disk_mb": spec.disk_mb}
    return {"type": "prepare", "id": prepare_id, "modules": list(modules), "timeout_s": timeout_s, "limits": limits}


def _missing(body: dict[str, Any]) -> tuple[MissingImport, ...]:
    if not (found := body.get("missing_imports")):
        return ()
    return tuple(
        MissingImport(
            _text(one["module"]),
            int(one["line"]),
            file=_optional_text(one.get("file")),
            names=tuple(_text(name)[:_KEY_CHARS] for name in (one.get("names") or ())[:_UNSET]),
            optional=one.get("optional") is True,
            path=(_optional_text(one.get("path")) or "")[:_KEY_CHARS] or None,
        )
        for one in found[:_IMPORTS]
    )


def _unset(body: dict[str, Any]) -> tuple[str, ...]:
    found = body.get("unset_params")
    return tuple(_text(key)[:_KEY_CHARS] for key in found[:_UNSET]) if found else ()


def read_loaded(frame: Frame) -> Loaded | Failed:
    """Read the runner's answer to a `load`.

    Raises:
      ProtocolError: the frame is of another kind, or malformed.
    """
    try:
        header, body = frame.header, decode_json(frame.body or b"{}")
        imports = _missing(body)
        if frame.type == "load_failed":
            return Failed(_error(body["error"]), _logs(header.get("logs")), imports=imports, classes=_classes(body))
        if frame.type != "loaded":
            raise ProtocolError(f"unexpected frame {frame.type!r}")
        bundle = _bundle(body.pop("bundle", None))
        if not is_small(body, values=_LOADED_VALUES, characters=_LOADED_CHARS):
            raise ValueError("the facts about the code are too large")
        return Loaded(
            contract=Contract(header["contract"]),
            contract_source=_text(header["contract_source"]),
            reason=_text(header["reason"]),
            entry=_text(header["entry"]),
            parameters=tuple(_text(p) for p in header["parameters"][:_FUNCTIONS]),
            notes=_notes(header.get("notes")),
            load_ms=_number(header.get("load_ms")),
            imports=imports,
            bundle=bundle,
            logs=_logs(header.get("logs")),
            together=header.get("together") is True,
            classes=_classes(body),
            facts=tuple(map(_function, (body.get("facts") or ())[:_FUNCTIONS])),
            reads=tuple(map(_read, (body.get("reads") or ())[:_READS])),
            not_loaded=tuple(_text(name)[:_KEY_CHARS] for name in (body.get("not_loaded") or ())[:_NOT_LOADED]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"malformed {frame.type!r} frame: {error!r}") from error


def _bundle(raw: Json) -> bytes | None:
    if raw is not None and not nests_within(raw, VALUE_DEPTH):
        raise ValueError("the bundle is nested too deeply")
    return None if raw is None else encode_json(raw)


def read_prepared(frame: Frame) -> str | None:
    """Read the runner's answer to a `prepare`: None if every import worked, else the reason why an import failed.

    Raises:
      ProtocolError: the frame is of another kind, or malformed.
    """
    if frame.type != "prepared":
        raise ProtocolError(f"unexpected frame {frame.type!r}")
    return None if frame.header.get("ready") is True else str(frame.header.get("reason"))[:_TEXT_CHARS]


def read_outcome(frame: Frame) -> Outcome:
    """Read the runner's answer to a `call`.

    Raises:
      ProtocolError: the frame is of another kind, or malformed.
    """
    try:
        kind, header, body = frame.type, frame.header, decode_json(frame.body)
        logs, run_ms, peak = _logs(header.get("logs")), _number(header.get("run_ms")), header.get("peak_memory_kb")
        peak_kb = peak if isinstance(peak, int) and not isinstance(peak, bool) else None
        size = memory_bytes(frame.body) + len(logs.stdout) + len(logs.stderr)
        if kind == "failed":
            imports, unset = _missing(body), _unset(body)
            error = _error(body["error"])
            return Failed(error, logs, run_ms, peak_kb, imports=imports, unset_params=unset, size_bytes=size)
        if kind != "result":
            raise ProtocolError(f"unexpected frame {kind!r}")
        unsupported = body.get("unsupported")
        return Returned(
            kind=_KINDS[body["kind"]],
            value=body.get("value"),
            nonfinite=tuple(map(_text, (body.get("nonfinite") or ())[:8])),
            unsupported=(_text(unsupported["path"]), _text(unsupported["type"])) if unsupported else None,
            notes=_notes(body.get("notes")),
            logs=logs,
            run_ms=run_ms,
            peak_memory_kb=peak_kb,
            imports=_missing(body),
            unset_params=_unset(body),
            size_bytes=size,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"malformed {frame.type!r} frame: {error!r}") from error


def is_cancelled(frame: Frame) -> bool:
    """Return whether a frame reports that `cancel` stopped a load or a call."""
    try:
        return frame.type in ("failed", "load_failed") and decode_json(frame.body)["error"]["code"] == "cancelled"
    except (KeyError, TypeError, ValueError):
        return False


def was_killed(error: EvaluationError) -> bool:
    """Return whether SIGKILL ended the process of a row; the evaluator itself or the machine may have sent it."""
    return error.code is ErrorCode.CRASHED and error.message.startswith(_KILLED)


def runner_limit_s(timeout_s: float) -> float:
    """Return the wall-clock limit for the runner; it is far above `timeout_s`, which the host itself enforces."""
    return min(_RUNNER_FACTOR * timeout_s + _RUNNER_LEAST_S, _RUNNER_MOST_S)


def timeout_error(timeout_s: float) -> EvaluationError:
    """Return the error of a row that exceeded its time limit and was stopped by the host."""
    return EvaluationError(
        ErrorCode.TIMEOUT,
        f"the row did not finish within {timeout_s:g} s",
        hint="make the evaluator faster, or raise limits.timeout_s",
    )


def load_timeout_error(timeout_s: float) -> EvaluationError:
    """Return the error of a load that exceeded its time limit and was stopped by the host."""
    return EvaluationError(
        ErrorCode.TIMEOUT,
        f"loading the code did not finish within {timeout_s:g} s",
        hint="do less at module level; the operator can raise the limit with EVALUATOR_HOST_LOAD_TIMEOUT_S",
    )


def memory_error(memory_mb: int) -> EvaluationError:
    """Return the error of a row that was killed at the memory limit of its sandbox."""
    return EvaluationError(
        ErrorCode.MEMORY_LIMIT,
        f"the evaluator used more than {memory_mb} MB of memory and was stopped",
        hint="use less memory at once, or raise limits.memory_mb",
    )


def _error(raw: dict[str, Any]) -> EvaluationError:
    code = raw["code"]
    if code in (ErrorCode.SANDBOX_LOST, ErrorCode.HOST_BUSY, ErrorCode.TARGET_FAILED):
        raise ValueError(f"the runner reported {code}, an error that only the host may report")
    return EvaluationError(
        code=ErrorCode.CRASHED if code == "cancelled" else ErrorCode(code),
        message=_plain(_text(raw["message"])).strip("\r\n"),
        type=_optional_text(raw.get("type")),
        line=_position(raw.get("line")),
        column=_position(raw.get("column")),
        traceback=None if raw.get("traceback") is None else _plain(_text(raw["traceback"])),
        hint=_optional_text(raw.get("hint")),
        fix=None if raw.get("fix") is None else _fix(raw["fix"]),
    )


def _fix(raw: dict[str, Any]) -> Fix:
    if raw["unique"] is True:
        return Fix(_fix_text(raw["code"]), _fix_text(raw["diff"]), unique=True)
    candidates = raw["candidates"][:_CANDIDATES]
    found = tuple(FixCandidate(_fix_text(one["code"]), _fix_text(one["diff"])) for one in candidates)
    return Fix(None, None, unique=False, candidates=found)


def _fix_text(raw: object) -> str:
    text = _whole_text(raw)
    if len(text) > _FIX_CHARS:
        raise ValueError("the corrected code is too long")
    return text


def _classes(body: dict[str, Any]) -> tuple[EvaluatorClass, ...]:
    return tuple(_class(raw) for raw in (body.get("classes") or ())[:_CLASSES])


def _class(raw: dict[str, Any]) -> EvaluatorClass:
    return EvaluatorClass(
        name=_text(raw["name"]),
        line=_position(raw["line"]),
        docstring=_optional_text(raw["docstring"]),
        id=_optional_text(raw["id"]),
        abstract=tuple(_text(name) for name in raw["abstract"][:_CLASSES]),
        error=_error(raw["error"]) if raw["error"] is not None else None,
        types=_optional_object(raw["types"]),
        config=_optional_object(raw["config"]),
    )


def _function(raw: dict[str, Any]) -> FunctionFacts:
    parameters = tuple(map(_parameter, raw["parameters"][:_NAMES]))
    return FunctionFacts(_name(raw["name"]), _position(raw["line"]), rest=raw["rest"] is True, parameters=parameters)


def _parameter(raw: dict[str, Any]) -> ParameterFacts:
    return ParameterFacts(
        _name(raw["name"]),
        read=raw["read"] is True,
        tested=raw["tested"] is True,
        keys=tuple(map(_name, raw["keys"][:_NAMES])),
        compared=tuple(map(_name, raw["compared"][:_NAMES])),
    )


def _read(raw: dict[str, Any]) -> ReadFacts:
    of = raw["of"]
    return ReadFacts(None if of is None else _name(of), _name(raw["key"]), tested=raw["tested"] is True)


def _name(raw: object) -> str:
    return _whole_text(raw)[:_NAME_CHARS]


def _optional_object(raw: object) -> dict[str, Any] | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or not nests_within(raw, VALUE_DEPTH):
        raise TypeError("expected an object")
    return raw


def _logs(raw: dict[str, Any] | None) -> Logs:
    if raw is None:
        return _NO_LOGS
    return Logs(stdout=_whole_text(raw["stdout"]), stderr=_whole_text(raw["stderr"]), truncated=bool(raw["truncated"]))


def _notes(raw: list[dict[str, Any]] | None) -> tuple[Note, ...]:
    return tuple(Note(code := _text(n["code"]), _text(n["message"]), remedy_of(code)) for n in raw[:16]) if raw else ()


def _whole_text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {type(raw).__name__}")
    return raw


def _text(raw: object) -> str:
    return _whole_text(raw)[:_TEXT_CHARS]


def _plain(text: str) -> str:
    return _COLOURS.sub("", text) if "\x1b" in text else text


def _optional_text(raw: object) -> str | None:
    return None if raw is None else _text(raw)


def _number(raw: object) -> float:
    known = isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw < _LONGEST_MS
    return float(raw) if known else 0.0  # type: ignore[arg-type]


def _position(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 < raw < 1 << 31 else None
