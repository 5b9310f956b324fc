"""The services of a host over its store: one member per kind of resource."""

from dataclasses import dataclass

from evaluator_host.datasets.blobs import BlobFolder
from evaluator_host.datasets.service import DatasetService
from evaluator_host.evaluators.live_traffic import Traffic
from evaluator_host.evaluators.registry import EvaluatorRegistry
from evaluator_host.jobs.results.exports import JobExports
from evaluator_host.jobs.results.results import JobResults
from evaluator_host.jobs.results.row_reader import RowReader
from evaluator_host.jobs.service import JobService
from evaluator_host.store.entities import Entities
from evaluator_host.store.secrets import Secrets


@dataclass(frozen=True, slots=True)
class StoredResources:
    """Every service that reads or writes the store."""

    evaluators: EvaluatorRegistry
    datasets: DatasetService
    jobs: JobService
    results: JobResults
    rows: RowReader
    exports: JobExports
    secrets: Secrets
    traffic: Traffic
    entities: Entities
    blobs: BlobFolder
