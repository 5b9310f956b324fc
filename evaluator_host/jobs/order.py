"""What a job is asked to do, as it is kept: its evaluators, its mapping, its target and its pace."""

from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import TypeAdapter

from evaluator_host.datasets.mapping import Mapping
from evaluator_host.model import Evaluator
from evaluator_host.reports.jobs import JobConfig, Target
from evaluator_host.store.job import JobEvaluator


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What is kept of the order of a job, besides its evaluators and its rows."""

    mapping: dict[str, str] = field(default_factory=dict)
    target: Target | None = None
    config: JobConfig = field(default_factory=JobConfig)

    def sources(self) -> Mapping:
        """Return the mapping, checked.

        Raises:
          InvalidRequest: it cannot be taken.
        """
        return Mapping.of(self.mapping)


_REQUEST: Final = TypeAdapter(JobRequest)
_EVALUATOR: Final = TypeAdapter(Evaluator)


def request_to_json(request: JobRequest) -> str:
    """Return what is kept."""
    return _REQUEST.dump_json(request).decode()


def request_from_json(text: str) -> JobRequest:
    """Return what was kept."""
    return _REQUEST.validate_json(text)


def evaluator_to_json(evaluator: Evaluator) -> str:
    """Return an evaluator as it is kept; its name and version are kept beside it."""
    return _EVALUATOR.dump_json(replace(evaluator, name=None, version=None)).decode()


def evaluator_of(kept: JobEvaluator) -> Evaluator:
    """Return an evaluator that a job keeps."""
    return replace(_EVALUATOR.validate_json(kept.content), name=kept.name, version=kept.version)
