"""Runs metrics on a running host: stores them as evaluators and the rows as a data set, then starts a job."""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from evaluator_host.client import DEFAULT_URL, Client
from evaluator_host.client.calls import encode
from evaluator_host.sdk.datasets.loader import prepare_rows
from evaluator_host.sdk.enums import ModelFormat
from evaluator_host.sdk.execution.backend import joined
from evaluator_host.sdk.execution.samples import build_offline_sample
from evaluator_host.sdk.execution.utils import is_metric_sequence, unique_metric_keys
from evaluator_host.sdk.values.models import Model
from evaluator_host.sdk.values.params import RunConfig
from evaluator_host.sdk.values.results import BenchmarkEvaluationResult, EvaluationResult
from evaluator_host.types.errors import NameTaken
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Limits
from evaluator_host.types.evaluator import Evaluator as HostEvaluator
from evaluator_host.types.jobs import JobReport, JobStatus, Target
from evaluator_host.vendors.nemo.results import generated_sample, logged_request
from evaluator_host.vendors.nemo.sdk.results import Answered, evaluation_result
from evaluator_host.vendors.nemo.sdk.source import ENTRY, metric_code
from evaluator_host.vendors.nemo.spec import ParamsIn
from evaluator_host.vendors.nemo.status import plain_message
from evaluator_host.vendors.nemo.targets import agent_target, make_target, place_of, template_of

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARS: Final = 48

Rows = Sequence[dict[str, Any]]


class Submission:
    """A job on a host, and its results.

    Attributes:
      url: The host's address.
      job_id: The job's id.
      evaluators: References to the stored metrics, such as `length@1`.
      dataset: Name of the data set on the host that has the rows.
    """

    def __init__(
        self,
        metrics: Sequence[Any],
        rows: Sequence[dict[str, Any]],
        *,
        url: str,
        key: str | None,
        several: bool,
        job_id: str,
        evaluators: Sequence[str],
        dataset: str,
    ) -> None:
        self.url = url
        self.job_id = job_id
        self.evaluators = tuple(evaluators)
        self.dataset = dataset
        self._metrics = dict(zip(unique_metric_keys(metrics), metrics, strict=True))
        self._rows = rows
        self._key = key
        self._several = several

    @property
    def job(self) -> JobReport:
        """The job with its progress, fetched from the host now.

        Raises:
          HostError: the host cannot be reached, or no longer has the job.
        """
        with self._client() as client:
            return client.jobs.get(self.job_id)

    @property
    def status(self) -> JobStatus:
        """The job's status, fetched from the host now.

        Raises:
          HostError: the host cannot be reached, or no longer has the job.
        """
        return self.job.status

    def wait_until_done(self, *, on_progress: Callable[[JobReport], None] | None = None) -> JobReport:
        """Wait until the job has completed, and return it.

        Args:
          on_progress: Called with the job whenever its progress has changed.

        Raises:
          RuntimeError: the job has failed or was cancelled.
          HostError: the host cannot be reached, or no longer has the job.
        """
        with self._client() as client:
            job = client.jobs.wait(self.job_id, on_progress=on_progress)
        if job.status is not JobStatus.COMPLETED:
            why = f": {job.error.message}" if job.error is not None else ""
            raise RuntimeError(f"job {self.job_id} has ended as {job.status.value}{why}")
        return job

    def cancel(self) -> JobReport:
        """Cancel the job, and return it; rows that were scored keep their results.

        Raises:
          HostError: the host cannot be reached or no longer has the job, or the job has already ended.
        """
        with self._client() as client:
            return client.jobs.cancel(self.job_id)

    def get_result(self) -> EvaluationResult | BenchmarkEvaluationResult:
        """Wait until the job has completed, and return its result. Rows that failed have `metric_errors`.

        Raises:
          RuntimeError: the job has failed or was cancelled.
          HostError: the host cannot be reached, or no longer has the job.
        """
        self.wait_until_done()
        results = {}
        with self._client() as client:
            statistics = client.jobs.results(self.job_id).evaluators
            for at, (key, metric) in enumerate(self._metrics.items()):
                answered: list[Answered | None] = [None] * len(self._rows)
                for row in client.jobs.rows(self.job_id, evaluator=self.evaluators[at]):
                    answered[row.index] = _answered(self._rows[row.index], row)
                together = statistics[at].together
                value = together.value if together is not None and together.error is None else None
                results[key] = evaluation_result(
                    metric,
                    key,
                    self._rows,
                    [one for one in answered if one is not None],
                    together=value,
                    in_declared_order=self._several,
                )
        return joined(results, len(self._rows)) if self._several else next(iter(results.values()))

    def print_summary(self, max_rows: int = 10) -> None:
        """Wait until the job has completed, and print the summary of its result.

        Args:
          max_rows: Maximum number of rows to print.

        Raises:
          RuntimeError: the job has failed or was cancelled.
          HostError: the host cannot be reached, or no longer has the job.
        """
        self.get_result().print_summary(max_rows)

    def _client(self) -> Client:
        return Client(self.url, key=self._key)


def submit(
    metrics: Any,
    dataset: Any,
    *,
    url: str = DEFAULT_URL,
    key: str | None = None,
    name: str | None = None,
    config: RunConfig | None = None,
    target: Any = None,
    prompt_template: str | dict[str, Any] | None = None,
    field_mapping: Any = None,
    packages: Sequence[str] = (),
    row_timeout_s: float | None = None,
) -> Submission:
    """Start a job on a host, with the same arguments and errors as `Evaluator.submit`."""
    several = is_metric_sequence(metrics)
    own = list(metrics) if several else [metrics]
    config = config or RunConfig()
    rows = prepare_rows(dataset, limit=config.limit_samples, mapping=field_mapping)
    limits = Limits(timeout_s=row_timeout_s) if row_timeout_s is not None else Limits()
    with Client(url, key=key) as client:
        references = [
            _kept(client, _name(name, metric_key, several=several), metric, tuple(packages), limits)
            for metric_key, metric in zip(unique_metric_keys(own), own, strict=True)
        ]
        kept_rows = _kept_rows(client, _name(name, unique_metric_keys(own)[0]), rows)
        job = client.jobs.create(
            references, kept_rows, target=None if target is None else _target(target, prompt_template, config, rows)
        )
    return Submission(
        own, rows, url=url, key=key, several=several, job_id=job.id, evaluators=references, dataset=kept_rows
    )


def _kept(client: Client, name: str, metric: Any, packages: tuple[str, ...], limits: Limits) -> str:
    """Store a metric and return a reference to it; if the name exists, store the metric as its next version."""
    evaluator = HostEvaluator(
        metric_code(metric),
        contract=Contract("nemo"),
        packages=packages,
        settings=EvaluatorSettings(entry=ENTRY),
        limits=limits,
    )
    try:
        report = client.evaluators.create(name, evaluator)
    except NameTaken:
        report = client.evaluators.update(name, evaluator)
    return f"{report.name}@{report.version}"


def _kept_rows(client: Client, name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Store rows as a data set, and return its name, which depends on the rows: the same rows are stored only once."""
    records = [{"inputs": row} for row in rows]
    digest = hashlib.sha256(b"\n".join(encode(record) for record in records)).hexdigest()[:12]
    kept = f"{name}-{digest}"
    with suppress(NameTaken):
        client.datasets.upload(kept, records)
    return kept


def _name(given: str | None, key: str, *, several: bool = False) -> str:
    name = key if given is None else f"{given}-{key}" if several else given
    return _NOT_IN_NAMES.sub("-", name).strip("-.")[:_NAME_CHARS] or "metric"


def _target(target: Any, prompt_template: str | dict[str, Any] | None, config: Any, rows: Rows) -> Target:
    """Convert NeMo's `Model` to the target that a job calls.

    Raises:
      InvalidRequest: there is no prompt, or a parameter is not valid.
    """
    if not isinstance(target, Model):
        params = ParamsIn.model_validate(config.model_dump(mode="json", exclude_none=True))
        return agent_target(target, params, prompt_template)
    secret = target.api_key_secret
    template = prompt_template if prompt_template is not None or not rows else template_of(rows[0], target.url)
    return make_target(
        place_of(target.url, target.name, None if secret is None else secret.root),
        ParamsIn.model_validate(config.model_dump(mode="json", exclude_none=True)),
        template,
        nim=target.format == ModelFormat.NVIDIA_NIM,
    )


def _answered(row: dict[str, Any], found: Any) -> Answered:
    sample, requests = (build_offline_sample(row), []) if found.request is None else generated_sample(found)
    requests += map(logged_request, found.result.get("requests") or ())
    error = found.result["error"]
    if error is not None:
        return Answered(None, plain_message(error["message"]), sample, requests)
    return Answered(found.result["value"], None, sample, requests)
