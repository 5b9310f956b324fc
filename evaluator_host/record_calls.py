"""What a client asks of a host about what is stored, as data: named evaluators, data sets, jobs."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import quote, urlencode

from evaluator_host.calls import Call, encode, evaluator_body, nothing, proof_body, reads
from evaluator_host.datasets.format import Format
from evaluator_host.model.evaluator import Evaluator, Json, Row
from evaluator_host.schemas.datasets import DatasetReport
from evaluator_host.schemas.evaluators import EvaluatorReport
from evaluator_host.schemas.jobs import JobReport, Target
from evaluator_host.schemas.migration import StoredMigration
from evaluator_host.schemas.results import (
    Comparison,
    FailureGroup,
    JobEvaluatorReport,
    JobFigures,
    JobRowDetail,
    JobRowPage,
    Pairs,
)
from evaluator_host.schemas.secrets import SecretReport
from evaluator_host.schemas.traffic import TraceReport

_read_evaluator: Final = reads(EvaluatorReport)
_read_migrations: Final = reads(list[StoredMigration])
_read_evaluators: Final = reads(list[EvaluatorReport])
_read_traces: Final = reads(list[TraceReport])
_read_dataset: Final = reads(DatasetReport)
_read_datasets: Final = reads(list[DatasetReport])
_read_records: Final = reads(list[dict[str, Any]])
_read_job: Final = reads(JobReport)
_read_jobs: Final = reads(list[JobReport])
_read_figures: Final = reads(JobFigures)
_read_page: Final = reads(JobRowPage)
_read_detail: Final = reads(JobRowDetail)
_read_failures: Final = reads(list[FailureGroup])
_read_job_evaluators: Final = reads(list[JobEvaluatorReport])
_read_pairs: Final = reads(Pairs)
_read_comparisons: Final = reads(list[Comparison])
_read_secret: Final = reads(SecretReport)
_read_secrets: Final = reads(list[SecretReport])


def create_evaluator(
    name: str, evaluator: Evaluator, description: str, *, sampling: float, force: bool
) -> Call[EvaluatorReport]:
    """Return the call that keeps an evaluator under a name."""
    body = {"name": name, "description": description, "sampling": sampling, **_pasted(evaluator)}
    return Call("POST", f"/v1/evaluators{_query(force=force)}", encode(body), _read_evaluator)


def update_evaluator(
    name: str, evaluator: Evaluator, description: str | None, *, sampling: float | None, force: bool
) -> Call[EvaluatorReport]:
    """Return the call that makes the next version."""
    body = {"description": description, "sampling": sampling, **_pasted(evaluator)}
    return Call("PUT", f"/v1/evaluators/{_part(name)}{_query(force=force)}", encode(body), _read_evaluator)


def evaluators() -> Call[list[EvaluatorReport]]:
    """Return the call that lists evaluators."""
    return Call("GET", "/v1/evaluators", None, _read_evaluators)


def evaluator(name: str, version: int | None) -> Call[EvaluatorReport]:
    """Return the call that shows a version."""
    at = "" if version is None else f"/versions/{version}"
    return Call("GET", f"/v1/evaluators/{_part(name)}{at}", None, _read_evaluator)


def versions(name: str) -> Call[list[EvaluatorReport]]:
    """Return the call that lists versions."""
    return Call("GET", f"/v1/evaluators/{_part(name)}/versions", None, _read_evaluators)


def traces(name: str, *, status: str | None, limit: int, before: int | None) -> Call[list[TraceReport]]:
    """Return the call that lists scored traces."""
    query = _query(status=status, limit=limit, before=before)
    return Call("GET", f"/v1/evaluators/{_part(name)}/traces{query}", None, _read_traces)


def migrate_evaluators(
    names: Iterable[str],
    rows: Iterable[Row] | None,
    dataset: str | None,
    *,
    mapping: Mapping[str, str] | None,
    job: str | None,
    dry_run: bool,
    force: bool,
) -> Call[list[StoredMigration]]:
    """Return the call that migrates named evaluators."""
    proof = proof_body(rows, dataset, mapping, job=job)
    body = {"names": list(names), **proof, "dry_run": dry_run, "force": force}
    return Call("POST", "/v1/evaluators/migrate", encode(body), _read_migrations)


def delete_evaluator(name: str) -> Call[None]:
    """Return the call that removes an evaluator."""
    return Call("DELETE", f"/v1/evaluators/{_part(name)}", None, nothing)


def upload_path(name: str, *, replace: bool) -> str:
    """Return where a file of rows is sent."""
    return f"/v1/datasets{_query(name=name, replace=replace)}"


def read_dataset(data: bytes) -> DatasetReport:
    """Read the answer to an upload."""
    return _read_dataset(data)


def datasets() -> Call[list[DatasetReport]]:
    """Return the call that lists data sets."""
    return Call("GET", "/v1/datasets", None, _read_datasets)


def dataset(name: str) -> Call[DatasetReport]:
    """Return the call that shows a data set."""
    return Call("GET", f"/v1/datasets/{_part(name)}", None, _read_dataset)


def dataset_rows(name: str, first: int, limit: int) -> Call[list[dict[str, Any]]]:
    """Return the call that reads some rows."""
    return Call("GET", f"/v1/datasets/{_part(name)}/rows{_query(first=first, limit=limit)}", None, _read_records)


def delete_dataset(name: str) -> Call[None]:
    """Return the call that removes a data set."""
    return Call("DELETE", f"/v1/datasets/{_part(name)}", None, nothing)


def create_job(
    evaluators: Iterable[Evaluator | str],
    dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
    *,
    mapping: dict[str, str],
    config: dict[str, Any],
    target: Target | None,
    idempotency_key: str | None,
) -> Call[JobReport]:
    """Return the call that queues a job."""
    body = {
        "evaluators": [evaluator_body(one) for one in evaluators],
        "dataset": dataset if isinstance(dataset, str | dict) else {"rows": list(dataset)},
        "mapping": mapping,
        "config": {name: value for name, value in config.items() if value is not None},
        "target": _target_body(target),
    }
    headers = () if idempotency_key is None else (("Idempotency-Key", idempotency_key),)
    return Call("POST", "/v1/jobs", encode(body), _read_job, headers)


def jobs(*, status: str | None, limit: int, before: str | None) -> Call[list[JobReport]]:
    """Return the call that lists jobs."""
    return Call("GET", f"/v1/jobs{_query(status=status, limit=limit, before=before)}", None, _read_jobs)


def job(job_id: str) -> Call[JobReport]:
    """Return the call that shows a job."""
    return Call("GET", f"/v1/jobs/{_part(job_id)}", None, _read_job)


def ask_job(job_id: str, verb: str) -> Call[JobReport]:
    """Return the call that has a job `pause`, `resume` or `cancel`."""
    return Call("POST", f"/v1/jobs/{_part(job_id)}/{verb}", None, _read_job)


def delete_job(job_id: str) -> Call[None]:
    """Return the call that removes a job."""
    return Call("DELETE", f"/v1/jobs/{_part(job_id)}", None, nothing)


def job_results(job_id: str) -> Call[JobFigures]:
    """Return the call that asks for the figures of a job."""
    return Call("GET", f"/v1/jobs/{_part(job_id)}/results", None, _read_figures)


def job_rows(job_id: str, **filters: Any) -> Call[JobRowPage]:
    """Return the call that reads a page of a job's rows."""
    return Call("GET", f"/v1/jobs/{_part(job_id)}/rows{_query(**filters)}", None, _read_page)


def job_row(job_id: str, index: int) -> Call[JobRowDetail]:
    """Return the call that reads one row."""
    return Call("GET", f"/v1/jobs/{_part(job_id)}/rows/{index}", None, _read_detail)


def job_failures(job_id: str, evaluator: str | None) -> Call[list[FailureGroup]]:
    """Return the call that asks for the failures of a job."""
    return Call("GET", f"/v1/jobs/{_part(job_id)}/failures{_query(evaluator=evaluator)}", None, _read_failures)


def job_evaluators(job_id: str) -> Call[list[JobEvaluatorReport]]:
    """Return the call that asks what a job runs."""
    return Call("GET", f"/v1/jobs/{_part(job_id)}/evaluators", None, _read_job_evaluators)


def job_pairs(job_id: str, other_id: str, evaluator: str | None, metric: str) -> Call[Pairs]:
    """Return the call that pairs the values of two jobs."""
    query = _query(evaluator=evaluator, metric=metric)
    return Call("GET", f"/v1/jobs/{_part(job_id)}/compare/{_part(other_id)}/pairs{query}", None, _read_pairs)


def download_path(job_id: str, format_: Format, evaluator: str | None) -> str:
    """Return where a file of a job's rows is."""
    return f"/v1/jobs/{_part(job_id)}/rows.{format_}{_query(evaluator=evaluator)}"


def compare_jobs(job_id: str, other_id: str, evaluator: str | None) -> Call[list[Comparison]]:
    """Return the call that compares two jobs."""
    path = f"/v1/jobs/{_part(job_id)}/compare/{_part(other_id)}{_query(evaluator=evaluator)}"
    return Call("GET", path, None, _read_comparisons)


def read_job(data: str) -> JobReport:
    """Read a job from an event."""
    return _read_job(data.encode())


def set_secret(name: str, value: str) -> Call[SecretReport]:
    """Return the call that keeps a secret."""
    return Call("PUT", f"/v1/secrets/{_part(name)}", encode({"value": value}), _read_secret)


def secrets() -> Call[list[SecretReport]]:
    """Return the call that lists secrets."""
    return Call("GET", "/v1/secrets", None, _read_secrets)


def secret(name: str) -> Call[SecretReport]:
    """Return the call that shows a secret, but not what it is."""
    return Call("GET", f"/v1/secrets/{_part(name)}", None, _read_secret)


def delete_secret(name: str) -> Call[None]:
    """Return the call that removes a secret."""
    return Call("DELETE", f"/v1/secrets/{_part(name)}", None, nothing)


def _target_body(target: Target | None) -> dict[str, Any] | None:
    if target is None:
        return None
    body = {one.name: getattr(target, one.name) for one in fields(target)}
    key = None if target.api_key is None else {"secret": target.api_key}
    return {**body, "api_key": key, "messages": list(target.messages) or None}


def _pasted(evaluator: Evaluator) -> dict[str, Any]:
    body = evaluator_body(evaluator)
    assert isinstance(body, dict)  # noqa: S101 - it is only text for a name
    return body


def _part(name: str) -> str:
    return quote(name, safe="")


def _query(**given: Any) -> str:
    named = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in given.items()
        if value is not None and value is not False
    }
    return f"?{urlencode(named)}" if named else ""
