"""Verbs over named evaluators: `client.evaluators`."""

from collections.abc import Iterable, Mapping
from types import NoneType

from evaluator_host.client.calls import Call, encode, pasted_body, path_part, proof_body, query
from evaluator_host.client.transport import TransportT, Verbs, verb
from evaluator_host.model.evaluator import Evaluator, Row
from evaluator_host.schemas.evaluators import EvaluatorReport
from evaluator_host.schemas.migration import StoredMigration
from evaluator_host.schemas.traffic import TraceReport


class EvaluatorVerbs(Verbs[TransportT]):
    """Named evaluators of the key's workspace."""

    @verb
    async def create(
        self, name: str, evaluator: Evaluator, *, description: str = "", sampling: float = 1.0, force: bool = False
    ) -> EvaluatorReport:
        """Store an evaluator under a name, as version 1.

        Args:
          name: Name of the evaluator.
          evaluator: The code and its settings.
          description: For people.
          sampling: Share of live traces to score, 0 to 1.
          force: Whether one that does not load is stored too.

        Raises:
          NameTaken: there is one of that name.
          InvalidRequest: it does not load; `problems` says why.
        """
        body = {"name": name, "description": description, "sampling": sampling, **pasted_body(evaluator)}
        path = f"/v1/evaluators{query(force=force)}"
        return await self._transport.send(Call("POST", path, EvaluatorReport, encode(body)))

    @verb
    async def update(
        self,
        name: str,
        evaluator: Evaluator,
        *,
        description: str | None = None,
        sampling: float | None = None,
        force: bool = False,
    ) -> EvaluatorReport:
        """Make the next version. An evaluator that equals the newest version makes none.

        Args:
          name: Name of the evaluator.
          evaluator: The code and its settings.
          description: For people; None keeps it as it is.
          sampling: Share of live traces to score, 0 to 1; None keeps it as it is.
          force: Whether one that does not load is stored too.

        Raises:
          NotFound: there is none of that name.
          InvalidRequest: it does not load; `problems` says why.
        """
        body = {"description": description, "sampling": sampling, **pasted_body(evaluator)}
        path = f"/v1/evaluators/{path_part(name)}{query(force=force)}"
        return await self._transport.send(Call("PUT", path, EvaluatorReport, encode(body)))

    @verb
    async def all(self) -> list[EvaluatorReport]:
        """Return the newest version of each evaluator, by name."""
        return await self._transport.send(Call("GET", "/v1/evaluators", list[EvaluatorReport]))

    @verb
    async def get(self, name: str, version: int | None = None) -> EvaluatorReport:
        """Return a version.

        Args:
          name: Name of the evaluator.
          version: From 1; None for the newest.

        Raises:
          NotFound: there is no such evaluator or version.
        """
        at = "" if version is None else f"/versions/{version}"
        return await self._transport.send(Call("GET", f"/v1/evaluators/{path_part(name)}{at}", EvaluatorReport))

    @verb
    async def versions(self, name: str) -> list[EvaluatorReport]:
        """Return every version, the newest first.

        Args:
          name: Name of the evaluator.

        Raises:
          NotFound: there is none of that name.
        """
        path = f"/v1/evaluators/{path_part(name)}/versions"
        return await self._transport.send(Call("GET", path, list[EvaluatorReport]))

    @verb
    async def traces(
        self, name: str, *, status: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[TraceReport]:
        """Return scored traces of live traffic, the newest first.

        Args:
          name: Name of the evaluator.
          status: `scored` or `failed`; None for both.
          limit: Traces, at most.
          before: `number` of the last trace of the page before.

        Raises:
          NotFound: there is no evaluator of that name.
        """
        path = f"/v1/evaluators/{path_part(name)}/traces{query(status=status, limit=limit, before=before)}"
        return await self._transport.send(Call("GET", path, list[TraceReport]))

    @verb
    async def migrate(
        self,
        *names: str,
        rows: Iterable[Row] | None = None,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        dry_run: bool = True,
        force: bool = False,
    ) -> list[StoredMigration]:
        """Migrate legacy evaluators: report what each would become, or make the next versions.

        Args:
          names: Names of evaluators; none for every legacy one.
          rows: Rows of the proof; without them and without a data set, the host makes some up.
          dataset: Name of a data set whose rows are those of the proof.
          mapping: Row fields by column or template of the data set.
          job: Id of a job whose rows are those of the proof.
          dry_run: Whether no version is made.
          force: Whether versions are made of those without proof too.

        Raises:
          NotFound: there is no such evaluator, data set or job.
        """
        proof = proof_body(rows, dataset, mapping, job=job)
        body = {"names": names, **proof, "dry_run": dry_run, "force": force}
        call = Call("POST", "/v1/evaluators/migrate", list[StoredMigration], encode(body))
        return await self._transport.send(call)

    @verb
    async def delete(self, name: str) -> None:
        """Remove an evaluator and its versions. Jobs keep what they ran.

        Args:
          name: Name of the evaluator.

        Raises:
          NotFound: there is none of that name.
        """
        await self._transport.send(Call("DELETE", f"/v1/evaluators/{path_part(name)}", NoneType))
