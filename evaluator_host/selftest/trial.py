"""One attack against one deployment: run it, compare, then ask itself and its neighbour, and look for what it left."""

import asyncio
import dataclasses
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from evaluator_host.model.errors import HostError, InvalidRequest
from evaluator_host.model.evaluator import Evaluator, Isolation, Language, Limits, Row
from evaluator_host.model.outcome import ErrorCode, EvaluationResult, Status
from evaluator_host.selftest import remains
from evaluator_host.selftest.attack import CALM_SCORE, NOTHING, REFUSED, Attack, Expected, scores
from evaluator_host.selftest.bait import Bait, new_mark
from evaluator_host.service import Service

NEIGHBOUR: Final = "selftest-neighbour"
"""The workspace of another tenant."""
_ATTACKER: Final = "selftest"
_GONE_S: Final = 5.0  # for what a row left to be gone: its sandbox ends it before the next row
_POLL_S: Final = 0.05
_CALM: Final = scores(CALM_SCORE, log="")
_NEIGHBOURLY: Final = {
    Language.PYTHON: "def evaluate(inputs, outputs, trace):\n    return inputs['x'] / 1000\n",
    Language.JAVASCRIPT: "function evaluate(inputs, outputs, trace) { return inputs.x / 1000; }\n",
    Language.TYPESCRIPT: "function evaluate(inputs: any): number { return inputs.x / 1000; }\n",
}


class Verdict(StrEnum):
    """What became of an attack."""

    STOPPED = "stopped"
    GOT_THROUGH = "got through"
    NOT_RUN = "not run"


class Late(str):
    """A problem that is a time-out where none was due: a machine that is too busy looks the same."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Tried:
    """One attack's verdict.

    Attributes:
      problems: What differed from what it must be; empty when it was stopped.
      outcome: What it came to, in short.
    """

    attack: Attack
    verdict: Verdict
    problems: tuple[str, ...]
    outcome: str
    seconds: float

    @property
    def late(self) -> bool:
        """Whether time ran out and nothing else was wrong: worth another try, alone."""
        return bool(self.problems) and all(isinstance(problem, Late) for problem in self.problems)


async def try_attack(attack: Attack, service: Service, bait: Bait) -> Tried:
    """Run an attack and everything that must hold after it. Never raises for what the attack did."""
    started = time.monotonic()
    trial = _Trial(attack, service, bait)
    try:
        problems = [problem async for problem in trial.run()]
    except HostError as error:
        return Tried(attack, Verdict.NOT_RUN, (error.detail,), trial.outcome, time.monotonic() - started)
    verdict = Verdict.GOT_THROUGH if problems else Verdict.STOPPED
    return Tried(attack, verdict, tuple(problems), trial.outcome, time.monotonic() - started)


def differences(result: EvaluationResult, allowed: tuple[Expected, ...]) -> list[str]:
    """Return how a result differs from every outcome that is allowed; empty when it is one of them."""
    if any(not list(_against(result, expected)) for expected in allowed):
        return []
    found = "; ".join(next(_against(result, expected)) for expected in allowed)
    kind = Late if result.error is not None and result.error.code is ErrorCode.TIMEOUT else str
    return [kind(f"{found} ({described(result)})")]


def described(result: EvaluationResult) -> str:
    """Return a result in a few words."""
    if result.error is not None:
        return f"failed: {result.error.code}: {result.error.message[:300]}"
    return f"{result.status}: {result.score}" + (f", {result.reason[:300]}" if result.reason else "")


def _against(result: EvaluationResult, expected: Expected) -> Iterator[str]:
    """Yield each way in which a result is not the expected one."""
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
        yield f"expected logs {'cut' if expected.truncated else 'whole'}"
    if expected.log is not None and result.logs.stdout != expected.log:
        yield f"expected standard output {expected.log[:80]!r}, got {result.logs.stdout[:80]!r}"


class _Trial:
    """An attack under way."""

    def __init__(self, attack: Attack, service: Service, bait: Bait) -> None:
        self.outcome = ""
        self._attack = attack
        self._service = service
        self._bait = bait
        self._mark = new_mark()
        self._limits = _within(attack.limits, service)

    async def run(self) -> AsyncIterator[str]:
        """Yield each thing that is not as it must be."""
        expected = tuple(self._filled_in(one) for one in self._attack.expected)
        calm = (_CALM,) if self._attack.calm else expected
        try:
            results = await self._results(self._evaluator(self._attack.code))
        except InvalidRequest as error:
            results = []
            self.outcome = f"refused: {error}"
            if REFUSED not in expected:
                yield f"the host refused it: {error}"
        for number, result in enumerate(results):
            self.outcome = self.outcome or described(result)
            for problem in differences(result, calm if number else expected):
                yield _of("the same evaluator afterwards", problem) if number else problem
        for problem in self._excesses(results):
            yield problem
        if self._attack.witness is not None:
            seen = await self._service.evaluate(
                self._evaluator(self._attack.witness), self._row(calm=False), workspace=NEIGHBOUR
            )
            for problem in differences(seen, (NOTHING,)):
                yield _of("another workspace saw it", problem)
        async for problem in self._afterwards():
            yield problem

    def _filled_in(self, expected: Expected) -> Expected:
        load_timeout_s = f"{self._service.settings.load_timeout_s:g}"
        return replace(expected, mentions=expected.mentions.replace("{load_timeout_s}", load_timeout_s))

    async def _results(self, evaluator: Evaluator) -> list[EvaluationResult]:
        """Return the hostile row's result and a calm one's after it."""
        rows = [self._row(calm=False), self._row(calm=True)]
        if self._attack.isolation is Isolation.BATCH:
            return await self._service.evaluate_batch(evaluator, rows, isolation=Isolation.BATCH, workspace=_ATTACKER)
        return [await self._service.evaluate(evaluator, row, workspace=_ATTACKER) for row in rows]

    def _excesses(self, results: list[EvaluationResult]) -> Iterator[str]:
        """Yield what no result may hold, whatever its outcome."""
        for result in results:
            text = f"{result.reason} {result.logs} {result.error} {result.value}"
            if self._bait.secret in text:
                yield "the secret of the host's file is in the result"
            for name in ("stdout", "stderr"):
                if len(getattr(result.logs, name)) > self._limits.log_kb * 1024:
                    yield f"more of {name} was kept than limits.log_kb"

    async def _afterwards(self) -> AsyncIterator[str]:
        """Look for what it left on the host, and ask the other tenant."""
        deadline = time.monotonic() + _GONE_S
        while found := remains.marked_processes([self._mark]):
            if time.monotonic() > deadline:
                yield f"processes outlive the row: {found[self._mark][:5]}"
                break
            await asyncio.sleep(_POLL_S)
        if files := remains.marked_files(self._mark, self._service.settings.data_dir):
            yield f"files were left on the host: {', '.join(files[:5])}"
        for problem in await neighbour_problems(self._service, self._attack.language):
            yield problem

    def _evaluator(self, code: str) -> Evaluator:
        return Evaluator(code, language=self._attack.language, contract=self._attack.contract, limits=self._limits)

    def _row(self, *, calm: bool) -> Row:
        return Row(
            inputs={
                **self._bait.inputs,
                **self._attack.inputs,
                "mark": self._mark,
                "row": f"row-{secrets.token_hex(12)}",
                "calm": calm,
            }
        )


async def neighbour_problems(service: Service, language: Language) -> list[str]:
    """Ask another tenant's evaluator something, and say when it is wrong."""
    x = time.monotonic_ns() % 1000
    evaluator = Evaluator(_NEIGHBOURLY[language], language=language)
    result = await service.evaluate(evaluator, Row(inputs={"x": x}), workspace=NEIGHBOUR)
    return [_of("another workspace afterwards", problem) for problem in differences(result, (scores(x / 1000),))]


def _of(where: str, problem: str) -> str:
    return type(problem)(f"{where}: {problem}")


def _within(limits: Limits, service: Service) -> Limits:
    """Return limits that this deployment allows."""
    ceilings = service.settings.limit_ceilings
    lower = {
        field.name: min(getattr(limits, field.name), getattr(ceilings, field.name))
        for field in dataclasses.fields(limits)
    }
    lower["memory_mb"] = min(lower["memory_mb"], service.settings.sandbox_memory_mb)
    return replace(limits, **lower)
