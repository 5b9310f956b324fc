"""Creates every service behind the routes for NeMo's client."""

from dataclasses import dataclass

from evaluator_host.platform.datasets.files import FILES
from evaluator_host.platform.datasets.object_rows import Bucket
from evaluator_host.platform.datasets.resource import DatasetResource
from evaluator_host.platform.host import Host
from evaluator_host.platform.jobs.resource import JobResource
from evaluator_host.platform.models.gateway.operator_grants import OperatorGrants
from evaluator_host.platform.store.secrets import Secrets
from evaluator_host.platform.store.workspaces import Workspaces
from evaluator_host.vendors.nemo.blobs import BlobFolder
from evaluator_host.vendors.nemo.entities import Entities
from evaluator_host.vendors.nemo.filesets import Filesets
from evaluator_host.vendors.nemo.jobs import NemoJobs
from evaluator_host.vendors.nemo.metrics import NemoMetrics
from evaluator_host.vendors.nemo.models import NemoModels
from evaluator_host.vendors.nemo.namespaces import Namespaces
from evaluator_host.vendors.nemo.older import OlderVerbs
from evaluator_host.vendors.nemo.results import NemoResults


@dataclass(frozen=True, slots=True)
class Nemo:
    """The services behind the routes for NeMo's client."""

    namespaces: Namespaces
    filesets: Filesets
    models: NemoModels
    metrics: NemoMetrics
    jobs: NemoJobs
    results: NemoResults
    older: OlderVerbs
    secrets: Secrets


def nemo_verbs(host: Host) -> Nemo:
    """Return the services that NeMo's client calls, built on the services of a host."""
    service, settings, store, jobs_of_host = host.service, host.settings, host.store, host.resource(JobResource)

    async def require_python(minor: str | None) -> None:
        await service.environments.queries.python(minor)

    entities = Entities(store.database, store.usage)
    bucket = None if settings.storage_url is None else Bucket(settings.storage_url)
    blobs = BlobFolder(settings.data_dir / FILES, max_bytes=settings.datasets_mb << 20, bucket=bucket)
    filesets = Filesets(entities, blobs, store.usage)
    models = NemoModels(entities, OperatorGrants(settings, Workspaces(store.database)))
    metrics = NemoMetrics(entities)
    jobs = NemoJobs(
        entities,
        filesets,
        metrics,
        models,
        board=jobs_of_host.service,
        rows=jobs_of_host.rows,
        datasets=host.resource(DatasetResource).service,
        max_rows=settings.max_rows_per_batch,
        require_python=require_python,
    )
    results = NemoResults(jobs, jobs_of_host.results, jobs_of_host.rows)
    older = OlderVerbs(service, metrics)
    return Nemo(Namespaces(entities), filesets, models, metrics, jobs, results, older, store.secrets)
