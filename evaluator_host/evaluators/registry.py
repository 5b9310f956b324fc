"""Stores named evaluators in versions, after checking that they load, and resolves references (`exact-match@3`)."""

import asyncio
import re
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from evaluator_host.model.errors import InvalidRequest, NotFound, Problem
from evaluator_host.model.evaluator import Contract, Evaluator
from evaluator_host.model.json_values import encode_json
from evaluator_host.model.outcome import EnvironmentInfo, EvaluationError
from evaluator_host.schemas.evaluation import CheckReport
from evaluator_host.schemas.stored import EvaluatorReport, Origin
from evaluator_host.service import Service
from evaluator_host.service.prepared import evaluator_digest
from evaluator_host.store.evaluators import Evaluators, StoredVersion, VersionContent
from evaluator_host.store.usage import StorageUsage

_REFERENCE: Final = re.compile(r"(?P<name>[^@]+)(?:@(?P<version>[0-9]{1,9}|latest))?")
_EVALUATOR: Final = TypeAdapter(Evaluator)
_ORIGIN: Final = TypeAdapter(Origin)
_PROBLEM: Final = TypeAdapter(EvaluationError)
_ENVIRONMENT: Final = TypeAdapter(EnvironmentInfo | None)


@dataclass(frozen=True, slots=True)
class ResolvedEvaluator:
    """The stored evaluator that a reference names.

    Attributes:
      evaluator: With its name and version.
      lock: Lock of its packages as JSON; None for a pasted evaluator, or without pins.
      evaluator_id: Of a stored evaluator; empty for a pasted one.
      sampling: Share of live traces to score, 0 to 1.
    """

    evaluator: Evaluator
    lock: str | None
    evaluator_id: str = ""
    sampling: float = 1.0


class EvaluatorRegistry:
    """The named evaluators of one host."""

    def __init__(self, service: Service, store: Evaluators, usage: StorageUsage) -> None:
        self._service = service
        self._store = store
        self._usage = usage

    async def create_evaluator(
        self,
        workspace_id: str,
        name: str,
        evaluator: Evaluator,
        *,
        description: str = "",
        sampling: float = 1.0,
        force: bool = False,
        key_id: str | None = None,
    ) -> EvaluatorReport:
        """Store an evaluator under a name as version 1, if it loads.

        Args:
          workspace_id: Owner of the evaluator.
          name: Letters, digits, dots, dashes and underscores.
          evaluator: Code, settings and pins.
          description: Description for people.
          sampling: Share of live traces to score, 0 to 1.
          force: Store it even if it does not load.
          key_id: The caller's key.

        Raises:
          InvalidRequest: the name is not valid, or the evaluator does not load; the problems say why.
          NameTaken: there is an evaluator of that name.
          OverQuota: the workspace stores as much as it may.
          HostError: as `Service.check`.
        """
        await self._usage.require_room(workspace_id, evaluator.characters)
        content = await self._content(workspace_id, evaluator, force=force, key_id=key_id)
        stored = await self._store.create_evaluator(
            workspace_id, name, content, description=description, sampling=sampling
        )
        return _report(stored)

    async def update_evaluator(
        self,
        workspace_id: str,
        name: str,
        evaluator: Evaluator,
        *,
        description: str | None = None,
        sampling: float | None = None,
        force: bool = False,
        key_id: str | None = None,
        origin: Origin | None = None,
    ) -> EvaluatorReport:
        """Store the next version and return it; content equal to the newest version adds none.

        Description and sampling rate belong to the name, and stay as they were unless given. `origin` is set for a
        migrated version.

        Raises:
          NotFound: there is no evaluator of that name.
          InvalidRequest: the evaluator does not load.
          OverQuota: the workspace stores as much as it may.
        """
        await self._usage.require_room(workspace_id, evaluator.characters)
        await self._store.get_version(workspace_id, name)
        content = await self._content(workspace_id, evaluator, force=force, key_id=key_id)
        if origin is not None:
            content = replace(content, origin=encode_json(origin).decode())
        stored = await self._store.add_version(workspace_id, name, content, description=description, sampling=sampling)
        return _report(stored)

    async def get_evaluator(self, workspace_id: str, name: str, version: int | None = None) -> EvaluatorReport:
        """Return a version of an evaluator, by default the newest.

        Raises:
          NotFound: there is no such evaluator or version.
        """
        return _report(await self._store.get_version(workspace_id, name, version))

    async def list_evaluators(self, workspace_id: str) -> list[EvaluatorReport]:
        """Return the newest version of each evaluator, by name."""
        return [_report(stored) for stored in await self._store.list_evaluators(workspace_id)]

    async def versions(self, workspace_id: str, name: str) -> list[EvaluatorReport]:
        """Return every version of an evaluator, the newest first.

        Raises:
          NotFound: there is no evaluator of that name.
        """
        return [_report(stored) for stored in await self._store.versions(workspace_id, name)]

    async def delete_evaluator(self, workspace_id: str, name: str) -> None:
        """Delete an evaluator and its versions; jobs keep copies of what they ran.

        Raises:
          NotFound: there is no evaluator of that name.
        """
        await self._store.delete_evaluator(workspace_id, name)

    async def resolve(self, workspace_id: str, reference: str) -> ResolvedEvaluator:
        """Return the evaluator that a reference names: `exact-match`, `exact-match@latest` or `exact-match@3`.

        Raises:
          NotFound: there is no such evaluator or version.
        """
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            raise NotFound(f"{reference[:80]!r} is no reference to an evaluator; write exact-match or exact-match@3")
        version = match["version"]
        wanted = None if version in (None, "latest") else int(version)
        stored = await self._store.get_version(workspace_id, match["name"], wanted)
        return ResolvedEvaluator(_evaluator(stored), stored.content.lock, stored.evaluator_id, stored.sampling)

    async def _content(
        self, workspace_id: str, evaluator: Evaluator, *, force: bool, key_id: str | None
    ) -> VersionContent:
        report = await self._service.check(evaluator, workspace=workspace_id)
        problem = report.problems[0] if report.problems else None
        if problem is not None and not force:
            raise _does_not_load(problem)
        return await self._kept(evaluator, report, problem, key_id)

    async def _kept(
        self, evaluator: Evaluator, report: CheckReport, problem: EvaluationError | None, key_id: str | None
    ) -> VersionContent:
        pinned = bool(report.environment.packages)
        environments = self._service.environments
        lock = await asyncio.to_thread(environments.lock_of, report.environment.digest) if pinned else None
        return VersionContent(
            digest=evaluator_digest(evaluator),
            content=_EVALUATOR.dump_json(replace(evaluator, name=None, version=None)).decode(),
            contract=report.contract,
            contract_source=report.contract_source,
            problem=None if problem is None else encode_json(problem).decode(),
            environment=report.environment.digest if pinned else None,
            lock=lock,
            packages=encode_json(report.environment if pinned else None).decode(),
            created_by=key_id,
        )


def _does_not_load(problem: EvaluationError) -> InvalidRequest:
    place = f" (line {problem.line})" if problem.line is not None else ""
    hint = problem.hint or "fix it, or keep it as it is with force"
    return InvalidRequest(
        f"the evaluator does not load: {problem.message}{place}",
        problems=(Problem("evaluator.code", f"{problem.code}: {problem.message}{place}", hint),),
    )


def _evaluator(stored: StoredVersion) -> Evaluator:
    kept = _EVALUATOR.validate_json(stored.content.content)
    return replace(kept, name=stored.name, version=stored.version)


def _report(stored: StoredVersion) -> EvaluatorReport:
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
        problem=None if content.problem is None else _PROBLEM.validate_json(content.problem),
        environment=_ENVIRONMENT.validate_json(content.packages),
        evaluator=_evaluator(stored),
        created_at=stored.created_at,
        created_by=content.created_by,
        origin=None if content.origin is None else _ORIGIN.validate_json(content.origin),
    )
