"""Finds the tables of all resources in a store."""

from weakref import WeakKeyDictionary

from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.evaluators.table import Evaluators
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.queue import JobQueue
from evaluator_host.platform.jobs.results.table import Results
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.platform.store.store import Store


class Tables:
    """The tables of all resources in a store's database; each is an attribute."""

    def __init__(self, store: Store) -> None:
        database = store.database
        self.evaluators = Evaluators(database)
        self.datasets = Datasets(database)
        self.jobs = Jobs(database)
        self.job_queue = JobQueue(database)
        self.results = Results(database)
        self.outputs = Outputs(database)
        self.models = ModelTable(database)


_KNOWN: WeakKeyDictionary[Store, Tables] = WeakKeyDictionary()


def tables(store: Store) -> Tables:
    """Return the tables of a store; every call returns the same objects."""
    if store not in _KNOWN:
        _KNOWN[store] = Tables(store)
    return _KNOWN[store]
