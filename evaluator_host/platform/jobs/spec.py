"""The spec of a job: as a caller gives it, and in the form that the database stores as JSON."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from evaluator_host.engine.contracts.table import name_in_config
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.rows import ALL, Shard
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.types.evaluator import Evaluator, Json
from evaluator_host.types.jobs import Failures, JobConfig, JobNode, Target


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The specification of a job, as a caller gives it."""

    # pasted evaluators, and references to stored ones (`exact-match@3`), in order
    evaluators: Sequence[Evaluator | str]
    dataset: str | Sequence[dict[str, Json]]  # name or id of a data set, or the rows themselves
    # source of each row field, `{"outputs": "answer"}`; see `datasets.mapping`
    mapping: dict[str, str] = field(default_factory=dict)
    target: Target | None = None  # the model that writes the outputs; None if the data set has them
    config: JobConfig = field(default_factory=JobConfig)  # parallelism, row limit, isolation and failure limit
    name: str | None = None  # name that people gave the job; None for most jobs
    schedule: str | None = None  # name of the schedule that makes the job; None for other jobs


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """The part of a `JobSpec` that is stored with the job. Evaluators and rows are stored in separate tables."""

    mapping: dict[str, str] = field(default_factory=dict)
    target: Target | None = None
    config: JobConfig = field(default_factory=JobConfig)

    def parse_mapping(self) -> Mapping:
        """Parse the spec's mapping of columns to row fields.

        Raises:
          InvalidRequest: a field does not exist, or a template is not valid.
        """
        return Mapping.from_sources(self.mapping)

    @property
    def shard(self) -> Shard:
        """The part of the rows that this job scores; all rows if there is no `config.shard`.

        Raises:
          InvalidRequest: `config.shard` is not valid.
        """
        return ALL if self.config.shard is None else Shard.parse(self.config.shard)


_LABEL: Final = 63
_REQUEST: Final = Adapter(StoredSpec)
_EVALUATOR: Final = Adapter(Evaluator)
_NODES: Final = Adapter(list[JobNode])


def spec_to_json(request: StoredSpec) -> str:
    return _REQUEST.json(request)


def spec_from_json(text: str) -> StoredSpec:
    return _REQUEST.read_json(text)


def counts_zero(job: Job) -> bool:
    """Return whether failed rows of a job count as score 0 and as not passed."""
    return spec_from_json(job.request).config.failures is Failures.ZERO


def evaluator_to_json(evaluator: Evaluator) -> str:
    """Convert an evaluator to JSON for the database; its name and version are stored in other columns."""
    return _EVALUATOR.json(replace(evaluator, name=None, version=None))


def label_of(evaluator: Evaluator, position: int, *, taken: Collection[str]) -> str:
    """Return a pasted evaluator's label: its configured name, or its position if the name is missing or taken."""
    name = name_in_config(evaluator.settings.config)
    fits = name is not None and 0 < len(name) <= _LABEL and name.isprintable() and name not in taken
    return str(name) if fits else f"evaluator {position + 1}"


def names_of(kept: JobEvaluator) -> frozenset[str]:
    """Return the names under which a row may have criteria for this evaluator."""
    evaluator = evaluator_of(kept)
    names = (kept.name, kept.label, evaluator.settings.entry, name_in_config(evaluator.settings.config))
    return frozenset(name for name in names if name is not None)


def nodes_of(job: Job) -> list[JobNode]:
    """Return the nodes that a job has used."""
    return [] if job.nodes is None else _NODES.read_json(job.nodes)


def evaluator_of(kept: JobEvaluator) -> Evaluator:
    """Return the evaluator stored with a job."""
    return replace(_EVALUATOR.read_json(kept.content), name=kept.name, version=kept.version)
