"""Runs one attack on a deployment. Checks its result, what it left behind, and whether evaluators still work.

The outcome must be one of the expected outcomes. The same evaluator and an evaluator of another workspace must still
answer correctly. No process or file may be left.
"""

import asyncio
import dataclasses
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.selftest.attack import CALM_SCORE, NOTHING, Attack, Expected, Group
from evaluator_host.selftest.canaries import MODEL, SLOW, Canaries, new_mark
from evaluator_host.selftest.leak_check import marked_files, marked_processes
from evaluator_host.types.errors import HostError, InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Limits, ModelBudget, Row
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode, EvaluationResult, Status

NEIGHBOUR: Final = "selftest-neighbour"
"""Name of the workspace of another tenant."""
_ATTACKER: Final = "selftest"
_GONE_S: Final = 5.0  # seconds until all processes of a row must have ended; normally, they end before the next row
_POLL_S: Final = 0.05
_LONGEST_POLL_S: Final = 0.4  # maximum pause in seconds between two searches, because each search reads all of /proc
_ASKED: Final = 2  # number of requests that a row may send to the model
_CALM: Final = Expected(Status.SCORED, CALM_SCORE, log="")
_NEIGHBOURLY: Final = {
    Language.PYTHON: "def evaluate(inputs, outputs, trace):\n    return inputs['x'] / 1000\n",
    Language.JAVASCRIPT: "function evaluate(inputs, outputs, trace) { return inputs.x / 1000; }\n",
    Language.TYPESCRIPT: "function evaluate(inputs: any, outputs: any, trace: any) { return inputs.x / 1000; }\n",
}


class AttackVerdict(StrEnum):
    """Whether an attack was stopped."""

    STOPPED = "stopped"
    GOT_THROUGH = "got through"
    NOT_RUN = "not run"


class TimedOut(str):
    """A problem that may come from the machine, not from the attack: an unexpected time-out, or a busy host."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The verdict on one attack.

    Attributes:
      problems: Differences from the expected outcomes; empty if the attack was stopped.
      outcome: A short description of the hostile row's result.
    """

    attack: Attack
    verdict: AttackVerdict
    problems: tuple[str, ...]
    outcome: str
    seconds: float

    @property
    def only_timed_out(self) -> bool:
        """Return whether a time-out was the only problem. If so, the attack runs again, alone."""
        return bool(self.problems) and all(isinstance(problem, TimedOut) for problem in self.problems)


async def run_attack(attack: Attack, service: Service, canaries: Canaries) -> AttackResult:
    """Run an attack, check the host after it, and return the result.

    No attack can make this function raise an error.
    """
    started = time.monotonic()
    trial = _Trial(attack, service, canaries)
    try:
        problems = [problem async for problem in trial.run()]
    except HostError as error:
        return AttackResult(attack, AttackVerdict.NOT_RUN, (error.detail,), trial.outcome, time.monotonic() - started)
    verdict = AttackVerdict.GOT_THROUGH if problems else AttackVerdict.STOPPED
    return AttackResult(attack, verdict, tuple(problems), trial.outcome, time.monotonic() - started)


def differences(result: EvaluationResult, allowed: tuple[Expected, ...]) -> list[str]:
    """Return how a result differs from each allowed outcome. Empty if the result fits one of the outcomes."""
    if any(not list(_against(result, expected)) for expected in allowed):
        return []
    found = "; ".join(next(_against(result, expected)) for expected in allowed)
    kind = TimedOut if result.error is not None and result.error.code in (ErrorCode.TIMEOUT, *HOST_FAULTS) else str
    return [kind(f"{found} ({described(result)})")]


def described(result: EvaluationResult) -> str:
    """Return a short description of a result."""
    if result.error is not None:
        return f"failed: {result.error.code}: {result.error.message[:300]}"
    return f"{result.status}: {result.score}" + (f", {result.reason[:300]}" if result.reason else "")


def _against(result: EvaluationResult, expected: Expected) -> Iterator[str]:
    """Yield each difference between a result and an expected outcome."""
    if expected.status is None:
        yield "expected to be refused"
    elif result.status is not expected.status:
        yield f"expected {expected.status}, got {result.status}"
    elif result.status is Status.SCORED and result.score != expected.score:
        yield f"expected score {expected.score}, got {result.score}"
    elif result.error is not None and expected.codes and result.error.code not in expected.codes:
        yield f"expected {' or '.join(expected.codes)}, got {result.error.code}"
    if result.error is not None and expected.mentions not in result.error.message:
        yield f"expected a message with {expected.mentions!r}"
    if expected.truncated is not None and result.logs.truncated is not expected.truncated:
        yield f"expected {'truncated' if expected.truncated else 'whole'} logs"
    if expected.log is not None and result.logs.stdout != expected.log:
        yield f"expected standard output {expected.log[:80]!r}, got {result.logs.stdout[:80]!r}"


class _Trial:
    """A running attack."""

    def __init__(self, attack: Attack, service: Service, canaries: Canaries) -> None:
        self.outcome = ""
        self._attack = attack
        self._service = service
        self._canaries = canaries
        self._mark = new_mark()
        self._limits = _within(attack.limits, service)
        self._data: dict[str, str] = {}

    async def run(self) -> AsyncIterator[str]:
        """Yield a message for each check that failed."""
        digest, workspaces = "", (_ATTACKER, NEIGHBOUR) if self._attack.data else ()
        for workspace in workspaces:
            digest = (await self._service.data.receive(workspace, _once(self._mark.encode()))).digest
            self._data = dict.fromkeys(self._attack.data, digest)
        try:
            async for problem in self._checks():
                yield problem
        finally:
            for workspace in workspaces:
                await asyncio.to_thread(self._service.data.delete_file, workspace, digest)

    async def _checks(self) -> AsyncIterator[str]:
        expected = tuple(self._filled_in(one) for one in self._attack.expected)
        calm = (_CALM,) if self._attack.calm else expected
        try:
            results = await self._results(self._evaluator(self._attack.code))
        except InvalidRequest as error:
            results = []
            self.outcome = f"refused: {error}"
            if all(one.status is not None for one in expected):
                yield f"the host refused the evaluator: {error}"
        for number, result in enumerate(results):
            self.outcome = self.outcome or described(result)
            for problem in differences(result, calm if number else expected):
                yield _of("the same evaluator afterwards", problem) if number else problem
        for problem in self._excesses(results):
            yield problem
        if self._attack.witness is not None:
            seen = await self._service.evaluate(
                self._evaluator(self._attack.witness), self._row(calm=False), caller=Caller(NEIGHBOUR)
            )
            for problem in differences(seen, (NOTHING,)):
                yield _of("another workspace saw it", problem)
        async for problem in self._afterwards():
            yield problem

    def _filled_in(self, expected: Expected) -> Expected:
        load_timeout_s = f"{self._service.settings.load_timeout_s:g}"
        return replace(expected, mentions=expected.mentions.replace("{load_timeout_s}", load_timeout_s))

    async def _results(self, evaluator: Evaluator) -> list[EvaluationResult]:
        """Return the results of the hostile row and of the harmless row after it."""
        rows = [self._row(calm=False), self._row(calm=True)]
        if self._attack.isolation is Isolation.BATCH:
            return await self._service.evaluate_batch(
                evaluator, rows, isolation=Isolation.BATCH, caller=Caller(_ATTACKER)
            )
        return [await self._service.evaluate(evaluator, row, caller=Caller(_ATTACKER)) for row in rows]

    def _excesses(self, results: list[EvaluationResult]) -> Iterator[str]:
        """Yield a message for each result that contains the content of the host's secret file, or too much output."""
        for result in results:
            text = f"{result.reason} {result.logs} {result.error} {result.value}"
            if self._canaries.secret in text:
                yield "the secret of the host's file is in the result"
            for name in ("stdout", "stderr"):
                if len(getattr(result.logs, name)) > self._limits.log_kb * 1024:
                    yield f"the host kept more of {name} than limits.log_kb allows"

    async def _afterwards(self) -> AsyncIterator[str]:
        """Yield what the attack left on the host, and how the attack disturbed the evaluator of the other workspace."""
        deadline, pause_s = time.monotonic() + _GONE_S, _POLL_S
        while found := marked_processes([self._mark]):
            if time.monotonic() > deadline:
                yield f"processes outlive the row: {found[self._mark][:5]}"
                break
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_POLL_S)
        if files := marked_files(self._mark, self._service.settings.data_dir):
            yield f"files were left on the host: {', '.join(files[:5])}"
        for problem in await neighbour_problems(self._service, self._attack.language):
            yield problem

    def _evaluator(self, code: str) -> Evaluator:
        made = Evaluator(code, language=self._attack.language, limits=self._limits, data=self._data)
        if self._attack.group is not Group.GATEWAY:
            return made
        hosts = (str(self._canaries.inputs["granted"]), SLOW)
        return replace(made, models=(MODEL,), budget=ModelBudget(requests=_ASKED), network=hosts)

    def _row(self, *, calm: bool) -> Row:
        return Row(
            inputs={
                **self._canaries.inputs,
                "attack": self._attack.name,
                "mark": self._mark,
                "row": f"row-{secrets.token_hex(12)}",
                "calm": calm,
            }
        )


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def neighbour_problems(service: Service, language: Language) -> list[str]:
    """Return what is wrong with the result of another workspace's evaluator; an empty list means nothing."""
    x = time.monotonic_ns() % 1000
    evaluator = Evaluator(_NEIGHBOURLY[language], language=language)
    result = await service.evaluate(evaluator, Row(inputs={"x": x}), caller=Caller(NEIGHBOUR))
    return [
        _of("another workspace afterwards", problem)
        for problem in differences(result, (Expected(Status.SCORED, x / 1000),))
    ]


def _of(where: str, problem: str) -> str:
    return type(problem)(f"{where}: {problem}")


def _within(limits: Limits, service: Service) -> Limits:
    """Return the limits, lowered to the highest limits that this deployment allows."""
    ceilings = service.settings.limit_ceilings
    lower = {
        field.name: min(getattr(limits, field.name), getattr(ceilings, field.name))
        for field in dataclasses.fields(limits)
    }
    lower["memory_mb"] = min(lower["memory_mb"], service.settings.sandbox_memory_mb)
    return replace(limits, **lower)
