"""Finds the stored evaluators that a job uses."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.types.errors import NotFound
from evaluator_host.types.evaluator import Evaluator


async def evaluators_of(registry: EvaluatorRegistry, workspace_id: str, spec: JobSpec) -> Iterable[Evaluator]:
    """Return a job's evaluators that cannot change: pasted evaluators, and stored evaluators with a version number."""
    found = [one for one in spec.evaluators if isinstance(one, Evaluator)]
    for reference in references(spec):
        if "@" in reference:
            with suppress(NotFound):  # raised if the evaluator was deleted although a job uses it
                found.append((await registry.resolve(workspace_id, reference)).evaluator)
    return found


def references(spec: JobSpec) -> Iterator[str]:
    """Yield the references to stored evaluators in a job."""
    return (one for one in spec.evaluators if isinstance(one, str))
