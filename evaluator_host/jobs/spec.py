"""The spec of a job as a caller gives it, and the part of it that is stored as JSON."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import TypeAdapter

from evaluator_host.datasets.mapping import Mapping
from evaluator_host.model.evaluator import Evaluator, Json
from evaluator_host.schemas.jobs import JobConfig, Target
from evaluator_host.store.job import JobEvaluator


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The job that a caller asks for.

    Attributes:
      evaluators: Pasted evaluators, and references to stored ones (`exact-match@3`), in order.
      dataset: Name or id of a data set, or the rows themselves.
      mapping: Sources by row field, `{"outputs": "answer"}`; see `datasets.mapping`.
      target: The model that writes the outputs; None where the data set has them.
      config: Parallelism, row limit, isolation and failure limit.
    """

    evaluators: Sequence[Evaluator | str]
    dataset: str | Sequence[dict[str, Json]]
    mapping: dict[str, str] = field(default_factory=dict)
    target: Target | None = None
    config: JobConfig = field(default_factory=JobConfig)


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """The part of a `JobSpec` that is stored with its job; evaluators and rows have tables of their own."""

    mapping: dict[str, str] = field(default_factory=dict)
    target: Target | None = None
    config: JobConfig = field(default_factory=JobConfig)

    def sources(self) -> Mapping:
        """Return the mapping, checked.

        Raises:
          InvalidRequest: it cannot be taken.
        """
        return Mapping.from_sources(self.mapping)


_LABEL: Final = 63
_REQUEST: Final = TypeAdapter(StoredSpec)
_EVALUATOR: Final = TypeAdapter(Evaluator)


def spec_to_json(request: StoredSpec) -> str:
    """Return what is kept."""
    return _REQUEST.dump_json(request).decode()


def spec_from_json(text: str) -> StoredSpec:
    """Return what was kept."""
    return _REQUEST.validate_json(text)


def evaluator_to_json(evaluator: Evaluator) -> str:
    """Return an evaluator as it is kept; its name and version are kept beside it."""
    return _EVALUATOR.dump_json(replace(evaluator, name=None, version=None)).decode()


def label_of(evaluator: Evaluator, position: int, *, taken: Collection[str]) -> str:
    """Return what a pasted evaluator is called in its job: its UiPath id, unless another has that, or its place."""
    name = _uipath_id(evaluator)
    fits = name is not None and 0 < len(name) <= _LABEL and name.isprintable() and name not in taken
    return str(name) if fits else f"evaluator {position + 1}"


def names_of(kept: JobEvaluator) -> frozenset[str]:
    """Return by which names rows may have criteria for an evaluator: its own, its label, its entry, its UiPath id."""
    evaluator = evaluator_of(kept)
    names = (kept.name, kept.label, evaluator.settings.entry, _uipath_id(evaluator))
    return frozenset(name for name in names if name is not None)


def _uipath_id(evaluator: Evaluator) -> str | None:
    """Return the id in the JSON file of a UiPath project, where that is the evaluator's configuration."""
    config = evaluator.settings.config
    name = config.get("id")
    return name if isinstance(name, str) and "evaluatorConfig" in config else None


def evaluator_of(kept: JobEvaluator) -> Evaluator:
    """Return an evaluator that a job keeps."""
    return replace(_EVALUATOR.validate_json(kept.content), name=kept.name, version=kept.version)
