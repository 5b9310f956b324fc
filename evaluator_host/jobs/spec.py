"""What a job is asked to do, as it is kept: its evaluators, its mapping, its target and its pace."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import TypeAdapter

from evaluator_host.datasets.mapping import Mapping
from evaluator_host.dialects.table import name_in_config
from evaluator_host.model.evaluator import Evaluator
from evaluator_host.schemas.jobs import JobConfig, Target
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


_LABEL: Final = 63
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


def label_of(evaluator: Evaluator, position: int, *, taken: Collection[str]) -> str:
    """Return the label of a pasted evaluator: the name in its configuration, unless that is taken, or its place."""
    name = name_in_config(evaluator.settings.config)
    fits = name is not None and 0 < len(name) <= _LABEL and name.isprintable() and name not in taken
    return str(name) if fits else f"evaluator {position + 1}"


def names_of(kept: JobEvaluator) -> frozenset[str]:
    """Return the names under which rows may have criteria for an evaluator."""
    evaluator = evaluator_of(kept)
    names = (kept.name, kept.label, evaluator.settings.entry, name_in_config(evaluator.settings.config))
    return frozenset(name for name in names if name is not None)


def evaluator_of(kept: JobEvaluator) -> Evaluator:
    """Return an evaluator that a job keeps."""
    return replace(_EVALUATOR.validate_json(kept.content), name=kept.name, version=kept.version)
