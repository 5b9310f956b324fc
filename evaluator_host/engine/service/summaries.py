"""Creates the summary of a batch, the description of a host, and the report of a check."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evaluator_host import __version__
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.parameters import rewritten
from evaluator_host.engine.contracts.reads import inputs_read, output_names
from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.engine.environments.store import Environments
from evaluator_host.engine.pool import Lease, Pool
from evaluator_host.engine.service.advice import advised, notes_on_clients
from evaluator_host.engine.service.missing_imports import with_hints
from evaluator_host.engine.service.prepared import Prepared
from evaluator_host.engine.service.row_io import environment_info, load_notes
from evaluator_host.types.evaluation import BatchSummary, CheckReport, HostInfo, Reads
from evaluator_host.types.evaluator import Contract, Evaluator, Language
from evaluator_host.types.numbers import mean_of, per_second
from evaluator_host.types.outcome import (
    EvaluationError,
    EvaluationResult,
    EvaluatorClass,
    Failed,
    MissingImport,
    Note,
    Status,
)
from evaluator_host.types.warnings import RowWarnings, code_threshold_notes, failed_together


def summarise(
    results: Sequence[EvaluationResult], *, seconds: float, together: EvaluationResult | None = None
) -> BatchSummary:
    """Return the summary of a batch that took `seconds`; `together` is the result for all rows together."""
    statuses, told = Counter(result.status for result in results), RowWarnings.of(results)
    scores = [result.score for result in results if result.score is not None]
    verdicts = [result.passed for result in results if result.passed is not None]
    return BatchSummary(
        rows=len(results),
        scored=statuses[Status.SCORED],
        failed=statuses[Status.FAILED],
        skipped=statuses[Status.SKIPPED],
        mean=mean_of(scores) if scores else None,
        pass_rate=sum(verdicts) / len(verdicts) if verdicts else None,
        errors=dict(Counter(result.error.code.value for result in results if result.error)),
        rows_per_s=per_second(len(results), seconds) or 0.0,
        warnings=told.counts(),
        doubt=told.doubt() or failed_together(together),
        mean_rows=len(scores),
        judged=len(verdicts),
    )


def host_info(settings: Settings, pool: Pool, environments: Environments) -> HostInfo:
    """Return the version, backend, limits and runtimes of a host; of Python, only the default version."""
    return HostInfo(
        version=__version__,
        backend=pool.backend.name,
        languages=tuple(language.value for language in Language),
        contracts=tuple(contract.value for contract in Contract),
        sandboxes=pool.capacity.sandboxes,
        max_sandboxes=pool.limits.max_sandboxes,
        waiting=pool.waiting,
        default_limits=settings.default_limits,
        limit_ceilings=settings.limit_ceilings,
        runtimes={
            "python": environments.queries.target(Language.PYTHON).runtime,
            "node": environments.queries.target(Language.JAVASCRIPT).runtime,
        },
        contract_fields={dialect.contract.value: dialect.takes for dialect in all_dialects()},
        contract_rows={one.contract.value: dict(one.native_row) for one in all_dialects() if one.native_row},
        model_requests=settings.max_model_requests,
        model_day=settings.model_day,
    )


def check_report(prepared: Prepared, answer: Lease | Failed, missing: tuple[MissingImport, ...]) -> CheckReport:
    """Return the report of a check; it is not `ok` if the evaluator did not load, or an import is missing.

    `missing` are the missing imports to list, with their pins.
    """
    listed = with_hints(missing, prepared.evaluator)
    if isinstance(answer, Failed):
        return CheckReport(
            ok=False,
            contract=None,
            contract_source=None,
            reason=None,
            parameters=(),
            missing_imports=listed,
            problems=(_problem(prepared, answer, missing),),
            notes=(*prepared.notes, *notes_on_clients(missing, prepared.evaluator)),
            environment=environment_info(prepared, None),
            logs=answer.logs,
            classes=_classes(prepared, answer.classes),
            **granted(prepared),
        )
    loaded = answer.loaded
    return CheckReport(
        ok=not missing,
        contract=loaded.contract,
        contract_source=loaded.contract_source,
        reason=loaded.reason,
        parameters=loaded.parameters,
        missing_imports=listed,
        problems=(),
        notes=(*load_notes(prepared, loaded), *_notes(prepared.evaluator, missing)),
        environment=environment_info(prepared, answer.sandbox),
        logs=loaded.logs,
        classes=_classes(prepared, loaded.classes),
        not_loaded=loaded.not_loaded,
        rewritten=rewritten(prepared.evaluator, loaded),
        reads=Reads(output_names(loaded), inputs_read(prepared.evaluator, loaded)),
        **granted(prepared),
    )


def _problem(prepared: Prepared, failed: Failed, missing: tuple[MissingImport, ...]) -> EvaluationError:
    evaluator = prepared.evaluator
    located = prepared.source.locate(failed.error)
    return advised(located, evaluator, evaluator.contract, replace(failed, imports=missing))


def _notes(evaluator: Evaluator, missing: Sequence[MissingImport]) -> tuple[Note, ...]:
    """Return warnings about missing clients of models or HTTP, and about a threshold outside 0..1."""
    return (*code_threshold_notes(evaluator), *notes_on_clients(missing, evaluator))


def granted(prepared: Prepared) -> dict[str, Any]:
    """Return an evaluator's grants for a check report, `{"models", "network", "secrets"}`; secrets are only named."""
    evaluator = prepared.evaluator
    return {"models": evaluator.models, "network": evaluator.network, "secrets": evaluator.secrets}


def _classes(prepared: Prepared, found: tuple[EvaluatorClass, ...]) -> tuple[EvaluatorClass, ...]:
    locate = prepared.source.locate
    return tuple(replace(one, error=locate(one.error)) if one.error is not None else one for one in found)
