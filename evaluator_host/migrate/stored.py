"""Migrates stored evaluators: gives each legacy evaluator a new version, and stores the migration's proof in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluator_host.engine.service import Service
from evaluator_host.migrate.migrate import migrate, migration_context
from evaluator_host.migrate.proof import contract_after
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry, VersionWish
from evaluator_host.types.evaluator import Contract, Row
from evaluator_host.types.migrations import StoredMigration
from evaluator_host.types.stored import EvaluatorReport, Origin


@dataclass(frozen=True, slots=True)
class StoredWish:
    """The options for migrating stored evaluators: which evaluators, and how.

    Attributes:
      names: Names of evaluators; empty means every legacy evaluator of the workspace.
      rows: Rows for every proof; None generates rows for each evaluator.
      dry_run: Whether only to report the results, without creating versions.
      force: Whether to create a version even if the proof failed.
      adapt: Whether to keep code that cannot be rewritten, and add a function that calls it.
      key_id: Id of the caller's API key; None on a host without keys.
    """

    names: tuple[str, ...] = ()
    rows: Sequence[Row] | None = None
    dry_run: bool = True
    force: bool = False
    adapt: bool = False
    key_id: str | None = None


async def migrate_stored(
    service: Service, registry: EvaluatorRegistry, workspace: str, *, wish: StoredWish
) -> list[StoredMigration]:
    """Migrate named evaluators of a workspace, in the order of their names.

    Raises:
      NotFound: there is no evaluator of that name.
      HostError: the host cannot run an evaluator now, see `Service.evaluate_batch`.
    """
    if wish.names:
        found = [await registry.get_evaluator(workspace, name) for name in dict.fromkeys(wish.names)]
    else:
        parts = registry.newest_versions(workspace)
        found = [one async for part in parts for one in part if one.contract is Contract.EVALUATE_V1]
    return [await _migrate(service, registry, workspace, report=report, wish=wish) for report in found]


async def _migrate(
    service: Service, registry: EvaluatorRegistry, workspace: str, *, report: EvaluatorReport, wish: StoredWish
) -> StoredMigration:
    stored = await registry.resolve(workspace, f"{report.name}@{report.version}")
    context = migration_context(service, workspace, stored.lock)
    migration = await migrate(stored.evaluator, wish.rows, context=context, name=report.name, adapt=wish.adapt)
    made = None
    wanted = migration.has_new_code and (migration.is_proven or wish.force)
    if wanted and not wish.dry_run and migration.proof is not None:
        evaluator = replace(stored.evaluator, code=migration.code, contract=contract_after(stored.evaluator))
        origin = Origin(report.version, replace(migration.proof, differences=()))
        how = VersionWish(force=wish.force, key_id=wish.key_id, origin=origin)
        made = await registry.update_evaluator(workspace, report.name, evaluator, how)
    return StoredMigration(report.name, report.version, made.version if made is not None else None, migration)
