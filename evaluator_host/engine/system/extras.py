"""Tells users which extra to install when an optional package is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from evaluator_host.types.errors import HostError, Misconfigured


@contextmanager
def extra(name: str, feature: str, error: type[HostError] = Misconfigured) -> Iterator[None]:
    """If a module is missing in the `with` block, raise an error that says which extra to install.

    Args:
      name: Extra of the package `evaluator-host`, such as `docker`.
      feature: Feature that needs the extra; the message begins with this text.
      error: Class of the error to raise.
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
