"""Opens the scheduler that runs a host's jobs."""

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service import Service
from evaluator_host.platform.datasets.opening import rows_folder
from evaluator_host.platform.jobs.nodes import RayNodes
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.queue import JobQueue
from evaluator_host.platform.jobs.run import JobContext
from evaluator_host.platform.jobs.scheduler import Scheduler, owner_name
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.models.access import ModelAccess
from evaluator_host.platform.store.store import Store


def scheduler_of(service: Service, store: Store) -> Scheduler:
    """Return the scheduler that runs the jobs of a host in the sandboxes of this service."""
    settings = service.settings
    nodes = None if settings.ray_address is None else RayNodes(settings.ray_address)
    queue, outputs, models = JobQueue(store.database), Outputs(store.database), model_access(settings, store)
    context = JobContext(service, queue, rows_folder(settings), owner_name(), store.usage, outputs, models, nodes)
    return Scheduler(context, Jobs(store.database), at_once=settings.jobs_at_once)


def model_access(settings: Settings, store: Store) -> ModelAccess:
    """Return the object through which jobs call models."""
    return ModelAccess(settings, secrets=store.secrets, any_key=store.keys.any_made)
