"""The installed package set of an evaluator: what it pins, and what light SDK modules need beside that."""

from dataclasses import replace

from evaluator_host.environments.store import Environments, InstalledSet
from evaluator_host.model.errors import InvalidPin
from evaluator_host.model.evaluator import Evaluator
from evaluator_host.packages.lock import Lock
from evaluator_host.service.sdks import SdkNeeds


async def require_set(
    environments: Environments,
    evaluator: Evaluator,
    needs: SdkNeeds | None,
    *,
    python: str | None,
    lock: str | None,
    workspace: str,
) -> InstalledSet:
    """Return the set that an evaluator runs on, its own pins as its packages; it is installed when it is new.

    Args:
      environments: The sets of this host.
      evaluator: Pins packages, or is for an SDK.
      needs: Of that SDK's light modules.
      python: Minor version that it asks for; None for the host's own.
      lock: Of the whole set, as JSON; None for what this host resolves the pins to.
      workspace: Whose turn a build takes.

    Raises:
      InvalidPin: a package is not pinned exactly.
      PackagesFailed: the set cannot be resolved or installed.
      IndexUnavailable: it is new, and the index does not answer.
    """
    try:
        if lock is not None:
            known = await environments.require_locked(Lock.from_json(lock), workspace=workspace)
        elif needs is not None and not evaluator.packages:
            shipped = needs.lock(environments.queries.target(evaluator.language, python))
            known = await environments.require_locked(shipped, workspace=workspace)
        else:
            packages = (*evaluator.packages, *(needs.pins if needs is not None else ()))
            known = await environments.require(packages, evaluator.language, python, workspace=workspace)
    except InvalidPin as error:
        problems = tuple(replace(problem, field=f"evaluator.{problem.field}") for problem in error.problems)
        raise InvalidPin(error.detail, problems=problems) from error
    return known if needs is None else replace(known, packages=needs.without(known.packages))
