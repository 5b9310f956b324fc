"""Names the extra to install when a package that only one feature needs is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from evaluator_host.model.errors import HostError, Misconfigured


@contextmanager
def extra(name: str, feature: str, error: type[HostError] = Misconfigured) -> Iterator[None]:
    """Turn a missing module in the block into an error that says which extra brings it.

    Args:
      name: The extra of the package `evaluator-host`, such as `docker`.
      feature: What needs it, as the first words of a sentence.
      error: The class of the error.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("evaluator_host"):
            raise
        raise error(
            f"{feature} needs the package {missing.name.partition('.')[0]}, which is not installed: "
            f"pip install 'evaluator-host[{name}]'"
        ) from missing
