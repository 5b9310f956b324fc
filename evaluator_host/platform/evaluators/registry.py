"""Stores named evaluators in versions, after checking that they load, and resolves references (`exact-match@3`)."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.prepared import evaluator_digest
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.evaluators.cases import check_cases, failing_request
from evaluator_host.platform.evaluators.table import NO_CHANGE, Evaluators, NameFacts, StoredVersion, VersionContent
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.errors import InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluation import CaseProblem, CheckReport
from evaluator_host.types.evaluator import Contract, Evaluator
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EnvironmentInfo, EvaluationError
from evaluator_host.types.stored import EvaluatorReport, Origin

_REFERENCE: Final = re.compile(r"(?P<name>[^@]+)(?:@(?P<version>[0-9]{1,9}|latest))?")
_EVALUATOR: Final = Adapter(Evaluator)
_CASES: Final = Adapter(list[dict[str, Any]])
_ORIGIN: Final = Adapter(Origin)
_PROBLEM: Final = Adapter(EvaluationError)
_ENVIRONMENT: Final[Adapter[EnvironmentInfo | None]] = Adapter(EnvironmentInfo | None)


Cases: TypeAlias = Sequence[dict[str, Any]]
"""Test cases, in the form that `evaluators.cases` describes."""


@dataclass(frozen=True, slots=True)
class VersionWish:
    """How to store a version of an evaluator."""

    about: NameFacts = NO_CHANGE
    message: str = ""  # reason for this version
    cases: Cases | None = None  # None keeps the cases of the version before
    force: bool = False  # whether to store the evaluator even if it does not load, or cases fail
    require_cases: bool = False  # whether to store the evaluator only if all cases pass
    key_id: str | None = None  # id of the caller's API key; None on a host without keys
    origin: Origin | None = None  # the version from which this one was migrated, with the proof


@dataclass(frozen=True, slots=True)
class ResolvedEvaluator:
    """A stored evaluator, found by a reference such as `exact-match@3`."""

    evaluator: Evaluator  # the evaluator, with its name and version
    lock: str | None  # lock of its packages as JSON; None for a pasted evaluator, or without pins
    evaluator_id: str = ""  # id of a stored evaluator; empty for a pasted one
    sampling: float = 1.0  # fraction of live traces to score, 0 to 1
    cases: Cases = ()  # rows, each with the expected result


@dataclass(frozen=True, slots=True)
class EvaluatorRegistry:
    """The named evaluators of one host.

    Every method for a stored evaluator raises `NotFound` if there is no evaluator with that name, or no such version.
    """

    service: Service
    store: Evaluators
    usage: StorageUsage

    async def create_evaluator(
        self, workspace_id: str, name: str, evaluator: Evaluator, wish: VersionWish
    ) -> EvaluatorReport:
        """Store an evaluator under a name as version 1, if it loads, and return this version.

        If the evaluator loads, its cases are run.

        Raises:
          InvalidRequest: the name is not valid, or the evaluator does not load; the error's problems say why.
          NameTaken: there is an evaluator with that name.
          OverQuota: the workspace has reached its quota.
          HostError: the host cannot check the evaluator now, see `Service.check`.
        """
        await self.usage.require_room(workspace_id, evaluator.characters)
        report, content = await self._content(workspace_id, evaluator, wish.cases or (), wish)
        stored = await self.store.create_evaluator(workspace_id, name, content, wish.about)
        return _report(stored, report.failing_cases)

    async def update_evaluator(
        self, workspace_id: str, name: str, evaluator: Evaluator, wish: VersionWish
    ) -> EvaluatorReport:
        """Store and return the next version. If nothing has changed, return the newest version instead.

        Raises:
          InvalidRequest: the evaluator does not load.
          OverQuota: the workspace has reached its quota.
        """
        await self.usage.require_room(workspace_id, evaluator.characters)
        newest = await self.store.get_version(workspace_id, name)
        cases = _CASES.read_json(newest.content.cases) if wish.cases is None else wish.cases
        report, content = await self._content(workspace_id, evaluator, cases, wish)
        return _report(await self.store.add_version(workspace_id, name, content, wish.about), report.failing_cases)

    async def describe_evaluator(self, workspace_id: str, name: str, about: NameFacts) -> EvaluatorReport:
        """Change description, sampling rate or tags of an evaluator, and return its newest version."""
        return _report(await self.store.describe_evaluator(workspace_id, name, about))

    async def get_evaluator(self, workspace_id: str, name: str, version: int | None = None) -> EvaluatorReport:
        """Return a version of an evaluator, by default the newest."""
        return _report(await self.store.get_version(workspace_id, name, version))

    async def newest_versions(self, workspace_id: str) -> AsyncGenerator[list[EvaluatorReport], None]:
        """Yield the newest version of each evaluator, sorted by name, in parts of a few MB."""
        async for part in self.store.newest_versions(workspace_id):
            yield await asyncio.to_thread(_reports, part)

    async def versions(self, workspace_id: str, name: str) -> AsyncGenerator[list[EvaluatorReport], None]:
        """Yield every version of an evaluator, the newest first, in parts of a few MB."""
        async for part in self.store.versions(workspace_id, name):
            yield await asyncio.to_thread(_reports, part)

    async def delete_evaluator(self, workspace_id: str, name: str) -> None:
        """Delete an evaluator and its versions; jobs keep copies of their evaluators."""
        await self.store.delete_evaluator(workspace_id, name)

    async def resolve(self, workspace_id: str, reference: str) -> ResolvedEvaluator:
        """Return the evaluator that a reference names: `exact-match`, `exact-match@latest` or `exact-match@3`."""
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            raise NotFound(f"{reference[:80]!r} is not a reference to an evaluator; write exact-match or exact-match@3")
        version = match["version"]
        wanted = None if version in (None, "latest") else int(version)
        stored = await self.store.get_version(workspace_id, match["name"], wanted)
        cases = _CASES.read_json(stored.content.cases)
        return ResolvedEvaluator(_evaluator(stored), stored.content.lock, stored.evaluator_id, stored.sampling, cases)

    async def _content(
        self, workspace_id: str, evaluator: Evaluator, cases: Cases, wish: VersionWish
    ) -> tuple[CheckReport, VersionContent]:
        evaluator = await self.service.pinned(evaluator, caller=Caller(workspace_id))
        report = await check_evaluator(self.service, evaluator, cases, Caller(workspace_id))
        problem = report.problems[0] if report.problems else None
        if problem is not None and not wish.force:
            raise _does_not_load(problem)
        if report.failing_cases and wish.require_cases and not wish.force:
            raise failing_request(report.failing_cases)
        pinned = bool(report.environment.packages)
        environments = self.service.environments
        lock = await asyncio.to_thread(environments.lock_of, report.environment.digest) if pinned else None
        return report, VersionContent(
            digest=evaluator_digest(evaluator),
            content=_EVALUATOR.json(replace(evaluator, name=None, version=None)),
            contract=report.contract,
            contract_source=report.contract_source,
            problem=None if problem is None else encode_json(problem).decode(),
            environment=report.environment.digest if pinned else None,
            lock=lock,
            packages=encode_json(report.environment if pinned else None).decode(),
            created_by=wish.key_id,
            origin=None if wish.origin is None else encode_json(wish.origin).decode(),
            cases=encode_json(cases).decode(),
            message=wish.message,
        )


async def check_evaluator(service: Service, evaluator: Evaluator, cases: Sequence[Any], caller: Caller) -> CheckReport:
    """Load an evaluator in a sandbox, run its cases, and report both.

    Raises:
      HostError: the host cannot evaluate now, see `Service.check` and `Service.evaluate_batch`.
    """
    evaluate = partial(service.evaluate_batch, evaluator, caller=caller)
    return await check_cases(evaluate, await service.check(evaluator, caller=caller), cases)


def _does_not_load(problem: EvaluationError) -> InvalidRequest:
    place = f" (line {problem.line})" if problem.line is not None else ""
    hint = problem.hint or "fix the code, or store it as it is with force"
    return InvalidRequest(
        f"the evaluator does not load: {problem.message}{place}",
        problems=(Problem("evaluator.code", f"{problem.code}: {problem.message}{place}", hint),),
    )


def _evaluator(stored: StoredVersion) -> Evaluator:
    kept = _EVALUATOR.read_json(stored.content.content)
    return replace(kept, name=stored.name, version=stored.version)


def _reports(part: list[StoredVersion]) -> list[EvaluatorReport]:
    return [_report(stored) for stored in part]


def _report(stored: StoredVersion, failing_cases: tuple[CaseProblem, ...] | None = None) -> EvaluatorReport:
    content = stored.content
    return EvaluatorReport(
        name=stored.name,
        version=stored.version,
        latest=stored.newest,
        description=stored.description,
        sampling=stored.sampling,
        digest=content.digest,
        contract=None if content.contract is None else Contract(content.contract),
        contract_source=content.contract_source,
        problem=None if content.problem is None else _PROBLEM.read_json(content.problem),
        environment=_ENVIRONMENT.read_json(content.packages),
        evaluator=_evaluator(stored),
        created_at=stored.created_at,
        created_by=content.created_by,
        origin=None if content.origin is None else _ORIGIN.read_json(content.origin),
        cases=tuple(_CASES.read_json(content.cases)),
        failing_cases=failing_cases,
        tags=tuple(json.loads(stored.tags)),
        message=content.message,
        author=stored.author,
    )
