"""Exceptions of the host: failures of the host itself, and requests that it cannot accept.

Failures of an evaluator's code are never exceptions; they are values (`outcome.Outcome`).

    HostError
    ├── InvalidRequest        422  the request is not valid
    │   ├── InvalidPin        422  a package is not pinned exactly
    │   └── LimitExceeded     422  working on the caller's data takes too much time or memory
    │       ├── OutOfProcessorTime  422  it takes too much processor time
    │       └── OutOfMemory         422  it takes too much memory
    ├── PackagesFailed        422  a package set cannot be resolved or installed
    ├── Unauthorized          401  no key, or a key that is not valid
    ├── Refused               403  a foreign Origin or Host header
    ├── NotFound              404  the object does not exist
    ├── InUse                 409  something else is using the object now
    ├── NameTaken             409  another object has this name already
    ├── TooSlow               408  a body that did not arrive in time
    ├── TooLarge              413  a body over its limit
    ├── OverQuota             507  the workspace has reached its storage limit
    ├── Busy                  429  the queue is full; `retry_after_s` says when to come back
    │   ├── RateLimited       429  this key sends requests faster than allowed
    │   └── HostBusy          503  the machine gives sandboxes too little processor time
    ├── SandboxUnavailable    503  no backend can start a sandbox
    │   └── SandboxSlow       503  a sandbox did not start in time; the next may start
    ├── StoreUnavailable      503  the database does not answer
    │   └── RowsElsewhere     503  the rows of a data set are on another host
    ├── IndexUnavailable      503  the package index does not answer
    ├── MachineExhausted      503  this machine has no more disk, descriptors or processes
    ├── PartFailed            503  a task of the host has failed and is being restarted
    ├── SandboxLost           503  a sandbox died, but not because of its code; retry
    ├── HostUnreachable       503  (client) no Evaluator Host answers at the URL
    └── Misconfigured         500  settings that contradict each other or the machine
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_EXHAUSTED: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
)

DISK_FULL: Final = "make room on that disk (`df -h` says how full it is, `df -i` whether it has inodes left)"
_RIGHTS: Final = "give the user that runs this host access to it"
_NO_PROGRAMS: Final = "; a program cannot run on a file system mounted noexec"
_IN_THE_WAY: Final = "this host needs a file or folder at this path, but something else is there: move it away"
_FILES: Final = "raise the limit of open files (`ulimit -n`, LimitNOFILE= in systemd)"
_TO_DO: Final = {
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "its file system is read-only: mount it writable, or choose another place (--data-dir)",
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: "make room in the disk quota, or raise it",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`, TasksMax= in systemd)",
    errno.ENOMEM: "give this machine more memory, or run less on it",
    errno.ENOEXEC: "the program is damaged, or made for another processor: install it again",
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.EIO: "the disk has a fault: see the log of the kernel (`dmesg`)",
}


def refusal_of(error: Exception, *, named: bool = True) -> str:
    """Describe an error of the operating system and what to do about it; return the message of any other error.

    If `named` is true, the description contains the path of the file.
    """
    if not isinstance(error, OSError):
        return str(error) or type(error).__name__
    path = f" ({error.filename})" if named and error.filename else ""
    said = error.strerror or str(error) or type(error).__name__
    to_do = _TO_DO.get(error.errno or 0, "try again later")
    return f"{said}{path}: {to_do}{_NO_PROGRAMS if to_do == _RIGHTS and _is_program(error.filename) else ''}"


def _is_program(path: object) -> bool:
    """Return whether there is a file at this path that may be run as a program."""
    try:
        return isinstance(path, str) and Path(path).is_file() and bool(Path(path).stat().st_mode & 0o111)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a request: `field` as a dotted path, a message, and what to do instead."""

    field: str
    message: str
    hint: str | None = None


class HostError(Exception):
    """Base of every exception this package raises on purpose.

    Attributes:
      code: Stable machine-readable name, in problem+json and `--json` output.
      status: HTTP status.
      exit_code: Exit code of the command line: 2 for a mistake of the caller, 3 for a fault of the host.
      problems: The individual faults, when there are several.
    """

    code = "internal"
    status = 500
    exit_code = 3

    def __init_subclass__(cls, *, code: str = "", status: int = 0, exit_code: int = 0) -> None:
        """Set the error class's attributes; attributes that are not given are inherited."""
        super().__init_subclass__()
        cls.code, cls.status, cls.exit_code = code or cls.code, status or cls.status, exit_code or cls.exit_code

    def __init__(self, detail: str, *, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problems = problems

    def for_callers(self) -> "HostError":
        """Return the error for HTTP responses: this error, or one without details that only the operator may see."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts from which pickle restores the same error, even if the class takes other arguments."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class InvalidRequest(HostError, code="invalid_request", status=422, exit_code=2):
    """The request is not acceptable; `problems` lists every fault."""

    @classmethod
    def of(cls, field: str, message: str, hint: str | None = None, *, what: str = "") -> "InvalidRequest":
        """Return the error for one invalid field.

        `what` is the thing that is refused because of the field, for example `target`.
        """
        detail = f"the {what} is not valid: {message}" if what else message
        return cls(detail, problems=(Problem(field, message, hint),))


class InvalidPin(InvalidRequest, code="invalid_pin"):
    """A package is not pinned exactly; each `Problem.hint` is the pin that was probably meant."""


class LimitExceeded(InvalidRequest, code="limit_exceeded"):
    """Working on the caller's data takes more time or memory than a call may use; the detail names the limit."""


class OutOfProcessorTime(LimitExceeded):
    """Working on the caller's data takes too much processor time."""


class OutOfMemory(LimitExceeded):
    """Working on the caller's data takes too much memory."""


class PackagesFailed(HostError, code="packages_failed", status=422, exit_code=2):
    """A package set cannot be resolved or installed; the detail is the resolver's own explanation."""


class Unauthorized(HostError, code="unauthorized", status=401, exit_code=2):
    """The request has no key, or one that is unknown, expired or revoked."""


class Refused(HostError, code="refused", status=403, exit_code=2):
    """A browser page of another origin, or a request with a foreign Host header, tried to reach the API."""


class NotFound(HostError, code="not_found", status=404, exit_code=2):
    """The requested object does not exist, or belongs to another workspace."""


class InUse(HostError, code="in_use", status=409, exit_code=2):
    """The object is in use now. The caller may try again later."""


class NameTaken(HostError, code="name_taken", status=409, exit_code=2):
    """Another object already has this name."""


class TooLarge(HostError, code="too_large", status=413, exit_code=2):
    """The request body is over its size limit."""


class TooSlow(HostError, code="too_slow", status=408, exit_code=2):
    """The request body did not arrive in time."""


class OverQuota(HostError, code="over_quota", status=507, exit_code=2):
    """The workspace has reached its storage limit; delete something, or ask the operator for more."""


class Busy(HostError, code="busy", status=429):
    """The queue is full. The caller should come back after `retry_after_s` seconds."""

    def __init__(self, detail: str, *, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class RateLimited(Busy, code="rate_limited"):
    """A key sends requests faster than allowed. The caller should retry after `retry_after_s` seconds."""


class HostBusy(Busy, code="host_busy", status=503):
    """The machine gave a sandbox no processor time; nothing is known about its code. The caller may try again."""

    def __init__(self, detail: str, *, retry_after_s: float = 5.0) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class SandboxUnavailable(HostError, code="sandbox_unavailable", status=503):
    """No backend can start a sandbox; the detail says what to install."""


class SandboxSlow(SandboxUnavailable):
    """A sandbox did not start in time, because the machine is busy; the next sandbox may start."""


class StoreUnavailable(HostError, code="store_unavailable", status=503):
    """The database does not answer, or cannot write; the detail may name its server, file and user."""

    def for_callers(self) -> HostError:
        """Return the error without the detail; the detail is in the log."""
        return StoreUnavailable(
            "this host cannot reach its stored data, and nothing was changed: try again in a while. The reason is in "
            "the log of the host; `evaluator-host doctor` on its machine shows it, too"
        )


class RowsElsewhere(StoreUnavailable):
    """The rows of a data set are in the data directory of another host; the detail names only the data set."""

    def for_callers(self) -> HostError:
        """Return this error unchanged."""
        return self


class IndexUnavailable(HostError, code="index_unavailable", status=503):
    """The package index does not answer."""


class MachineExhausted(HostError, code="machine_exhausted", status=503):
    """This machine has run out of disk, descriptors or processes; retry once the operator has freed some."""

    @classmethod
    def by(cls, error: OSError, *, doing: str) -> "MachineExhausted":
        """Return the error for an operation that the operating system refused; `doing` describes the operation."""
        return cls(f"this machine could not {doing}: {refusal_of(error, named=False)}")

    @classmethod
    def cause_of(cls, error: BaseException) -> "MachineExhausted | None":
        """Return a MachineExhausted if `error` is an OSError that says that this machine ran out of something."""
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            return cls.by(error, doing="do what was asked")
        return None

    @classmethod
    @contextmanager
    def refused(cls, doing: str) -> Iterator[None]:
        """Turn an OSError raised in the `with` block, such as a full disk, into MachineExhausted.

        Raises:
          MachineExhausted: the operating system refused what the block does.
        """
        try:
            yield
        except OSError as error:
            raise cls.by(error, doing=doing) from error


class PartFailed(HostError, code="part_failed", status=503):
    """A task of the host has failed and is being restarted; only `/readyz` reports this."""


class SandboxLost(HostError, code="sandbox_lost", status=503):
    """A sandbox died for a reason outside the evaluator (engine stopped, host out of memory). Retry the call."""


class HostUnreachable(HostError, code="host_unreachable", status=503):
    """Nothing answers at the client's URL, or the server there is not an Evaluator Host."""


class Misconfigured(HostError, code="misconfigured", exit_code=2):
    """Settings contradict each other or do not fit the machine."""
