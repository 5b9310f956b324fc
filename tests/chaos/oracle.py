"""Judges all answers and stored data of a host under faults, by comparing them with a run without faults and with the
documentation.

A different answer is a finding, unless a fault that can cause it went on during the call or had just ended. `EXCUSES`
lists the outcomes that each fault can cause, like the table of faults in docs/operations.md.
"""

import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from tests.chaos.plan import Fault, Kind
from tests.chaos.programs import ROWS, Program

NO_ANSWER: Final = "no answer"
NOT_READY: Final = "not ready"
AFTER_S: Final = (
    # seconds for which a fault excuses failures after its end: calls wait 15 s for a database, and a busy machine is
    # slow
    30.0
)

_STORE = frozenset({"store_unavailable", NOT_READY})
_GONE = frozenset({NO_ANSWER, NOT_READY, "sandbox_unavailable"})
EXCUSES: Final = {
    Kind.KILL_HOST: _GONE,
    Kind.RESTART_HOST: _GONE,
    Kind.STOP_HOST: frozenset({NOT_READY, "index_unavailable"}),
    Kind.JUMP_CLOCK: frozenset[str](),
    Kind.FEW_DESCRIPTORS: frozenset(
        {"machine_exhausted", "sandbox_unavailable", "store_unavailable", "index_unavailable", NO_ANSWER, NOT_READY}
    ),
    Kind.KILL_CHILD: frozenset[str](),
    Kind.STOP_CHILD: frozenset({NOT_READY}),
    Kind.KILL_CALLS: frozenset({NO_ANSWER}),
    Kind.STOP_CALLS: frozenset({NO_ANSWER, NOT_READY}),
    Kind.KILL_SANDBOX: frozenset({"sandbox_lost"}),
    Kind.KILL_RUNNER: frozenset({"sandbox_lost", "crashed"}),
    Kind.STOP_SANDBOX: frozenset({NOT_READY}),
    Kind.REMOVE_CGROUP: frozenset({"sandbox_unavailable", "sandbox_lost", NOT_READY}),
    Kind.KILL_ENGINE: frozenset({"sandbox_unavailable", "sandbox_lost", NOT_READY}),
    Kind.LOCK_FILE: _STORE,
    Kind.FILE_READ_ONLY: _STORE,
    Kind.KILL_DATABASE: _STORE,
    Kind.FREEZE_DATABASE: _STORE,
    Kind.END_CONNECTIONS: _STORE,
    Kind.DATABASE_READ_ONLY: _STORE,
    Kind.FULL_DATABASE: _STORE,
    Kind.CUT_NETWORK: _STORE,
    Kind.SILENT_NETWORK: _STORE,
    Kind.FULL_DISK: frozenset({"store_unavailable", "machine_exhausted", NOT_READY}),
    Kind.FOLDERS_READ_ONLY: frozenset({"machine_exhausted"}),
    Kind.INDEX_DOWN: frozenset({"index_unavailable"}),
    Kind.INDEX_SILENT: frozenset({"index_unavailable"}),
    Kind.KILL_BUILDER: frozenset({"machine_exhausted", "index_unavailable"}),
}
"""The outcomes that each kind of fault can cause: codes of problem+json, codes of failed rows, `NO_ANSWER`,
`NOT_READY`."""

_ENDS_JOBS: Final = (Kind.KILL_HOST, Kind.KILL_CHILD, Kind.STOP_CHILD)
_ALWAYS: Final = frozenset({"busy"})


@dataclass(slots=True)
class _Window:
    kind: Kind
    began: float
    ended: float | None = None


class Timeline:
    """Records when faults were going on, in monotonic times (`began`, `ended`). Several threads use it."""

    def __init__(self) -> None:
        self._windows: list[_Window] = []
        self.hits: Counter[Kind] = Counter()
        self.missed: Counter[Kind] = Counter()  # number of faults that found nothing to hit, by kind
        # number of runners killed under bubblewrap; with containers, the host knows that the evaluator did not end them
        self.runners_killed = 0

    def begin(self, fault: Fault) -> _Window:
        window = _Window(fault.kind, time.monotonic())
        self._windows.append(window)
        return window

    def end(self, window: _Window, *, hit: bool) -> None:
        window.ended = time.monotonic()
        (self.hits if hit else self.missed)[window.kind] += 1

    def excused(self, outcome: str, began: float, ended: float) -> bool:
        """Whether a fault that was going on between two times can have caused an outcome."""
        if outcome in _ALWAYS:
            return True
        return any(
            outcome in EXCUSES[one.kind] and one.began <= ended and (one.ended is None or began <= one.ended + AFTER_S)
            for one in tuple(self._windows)
        )

    def recent(self, kinds: Collection[Kind], now: float) -> bool:
        """Whether a fault of one of these kinds is going on, or ended a moment ago."""
        return any(
            one.kind in kinds and (one.ended is None or now <= one.ended + AFTER_S) for one in tuple(self._windows)
        )

    def last(self, within_s: float) -> list[str]:
        """Return the kinds of faults in the last seconds, the newest last."""
        since = time.monotonic() - within_s
        return [str(one.kind.value) for one in tuple(self._windows) if one.ended is None or one.ended > since]

    def happened(self, kind: Kind) -> bool:
        return any(one.kind is kind for one in tuple(self._windows))


def essence(program: Program, result: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a result that must be the same in every run."""
    error = result["error"]
    if error is None:
        kept = {name: result[name] for name in ("status", "score", "passed", "label", "metrics", "value", "warnings")}
        return {**kept, "stdout": result["logs"]["stdout"]}
    if error["code"] != "user_exception":
        return {"status": result["status"], "error": error["code"]}
    names = ("code", "message", "type", "line", "traceback")
    return {"status": result["status"], "error": {name: error[name] for name in names}}


def code_of(result: dict[str, Any]) -> str:
    """Return `scored`, or the code of the error."""
    return result["error"]["code"] if result["error"] else str(result["status"])


@dataclass
class Oracle:
    """Judges answers, and counts right answers and findings.

    Attributes:
      expected: A dict from each program's name to the essence of each row's result in a run without faults.
      findings: Sentences, each about one thing that was wrong.
      counts: Numbers of calls and rows, by outcome.
    """

    timeline: Timeline = field(default_factory=Timeline)
    expected: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    # number of rows with an unexpected code `crashed`; one is allowed for every two runners that were killed
    crashed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def learn(self, program: Program, results: list[dict[str, Any]]) -> None:
        """Store results from a run without faults as the right ones.

        Raises:
          AssertionError: the program had an outcome that it must not have without faults.
        """
        ends = {code_of(result) for result in results}
        assert ends <= program.ends, f"{program.name}: {ends} in a run without faults: {results}"
        assert len(results) == ROWS
        self.expected[program.name] = [essence(program, result) for result in results]

    def find(self, sentence: str) -> None:
        told = f"{sentence}\n(faults of the last minute: {', '.join(self.timeline.last(60.0)) or 'none'})"
        with self._lock:
            self.findings.append(told)
        print(f"FINDING {told}", flush=True)

    def judge_result(self, where: str, program: Program, number: int, result: dict[str, Any]) -> bool:
        """Judge a row's result, and return whether it is right. If its runner was killed twice, an error is right."""
        expected, found = self.expected[program.name][number % ROWS], essence(program, result)
        if found == expected:
            self.counts["rows right"] += 1
            return True
        if code_of(result) == "crashed":
            self.counts["rows crashed"] += 1
            self.crashed += 1  # the end of the run decides whether too many rows crashed
            return True
        self.find(f"{where}: {program.name}({number % ROWS}): {result['error'] or found}, expected {expected}")
        return False

    def judge_call(self, program: Program, number: int, status: int, headers: Any, body: Any, began: float) -> None:
        """Judge the answer of `POST /v1/evaluate`."""
        where, ended = "evaluate", time.monotonic()
        if status != 200:
            self.judge_refusal(where, status, headers, body, began)
            return
        self.counts["calls answered"] += 1
        code = code_of(body)
        if code not in program.ends and code != "crashed" and self.timeline.excused(code, began, ended):
            self.counts[f"calls {code}"] += 1
            return
        self.judge_result(where, program, number, body)

    def judge_refusal(self, where: str, status: int, headers: Any, body: Any, began: float) -> None:
        """Judge an answer that is not a success: it must have the documented form, and a code that a fault explains."""
        ended = time.monotonic()
        code = body.get("code", "none") if isinstance(body, dict) else "none"
        self.counts[f"refused: {status} {code}"] += 1
        if headers.get("content-type") != "application/problem+json":
            self.find(f"{where}: {status} is no problem+json but {headers.get('content-type')}: {str(body)[:300]}")
        elif status == 429 and "retry-after" not in headers:
            self.find(f"{where}: 429 without Retry-After: {body}")
        elif not self.timeline.excused(code, began, ended):
            self.find(f"{where}: {status} {code} that no fault explains: {body['detail'][:400]}")

    def judge_no_answer(self, where: str, error: Exception, began: float) -> None:
        """Judge a call that got no answer, because its connection was refused or broke off."""
        self.counts["no answer"] += 1
        if not self.timeline.excused(NO_ANSWER, began, time.monotonic()):
            self.find(f"{where}: no answer, and no fault explains it: {error!r}")

    def judge_job(self, job: dict[str, Any], programs: list[Program], rows: int, lines: list[dict[str, Any]]) -> None:
        """Judge a job that has ended, and each of its stored rows."""
        where = f"job {job['id']}"
        # documented behaviour: the host ended while nothing of the job was stored
        if (job.get("error") or {}).get("code") == "host_ended":
            self.counts["jobs that two kills ended"] += 1
            if sum(self.timeline.hits[kind] for kind in _ENDS_JOBS) < 2:
                self.find(f"{where}: {job}")
            return
        if job["status"] != "completed":
            self.find(f"{where}: {job['status']}: {job['error']}, {job['progress']}")
            return
        seen: Counter[tuple[str, int]] = Counter()
        names = dict(zip(job["evaluators"], programs, strict=True))
        for line in lines:
            seen[line["evaluator"], line["index"]] += 1
            self.judge_result(where, names[line["evaluator"]], line["index"], line["result"])
        wanted = {(name, index) for name in names for index in range(rows)}
        if missing := wanted - seen.keys():
            self.find(f"{where}: {len(missing)} of {len(wanted)} rows have no result: {sorted(missing)[:5]}")
        if twice := [key for key, count in seen.items() if count > 1 or key not in wanted]:
            self.find(f"{where}: {len(twice)} rows have several results, or none asked for them: {twice[:5]}")
        done = job["progress"]["done"]
        if done != len(wanted):
            self.find(f"{where}: progress says {done} of {len(wanted)}")
        self.counts["jobs completed"] += 1

    def judge_online(self, job: dict[str, Any], rows: int, lines: list[dict[str, Any]]) -> None:
        """Judge an online job that has ended: the model must have answered each row, and each row must have a score."""
        where = f"online job {job['id']}"
        if (job.get("error") or {}).get("code") == "host_ended":
            return
        if job["status"] != "completed" or sorted(line["index"] for line in lines) != list(range(rows)):
            self.find(f"{where}: {job['status']}: {job['error']}, {len(lines)} results for {rows} rows")
        for line in lines:
            if line["result"]["score"] != 1.0:
                self.find(f"{where}: row {line['index']}: {line['result']['error'] or line['result']}")
            self.counts["online rows judged"] += 1
        self.counts["online jobs completed"] += 1

    def judge_end(self) -> None:
        """Judge facts that are known only after the whole run."""
        killed = self.timeline.runners_killed
        if self.crashed > killed // 2:
            self.find(f"{self.crashed} rows read crashed that should not, and {killed} runners were killed")
