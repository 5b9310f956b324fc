"""The Python version on which the tests run, and the other Python versions on this machine."""

import sys

from evaluator_host.engine.config.settings import python_homes, search_path
from evaluator_host.engine.sandbox.pythons import PythonFacts, Pythons

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
_PYTHONS = Pythons(search_path=search_path(), homes=python_homes())
MINORS = _PYTHONS.minors()
OTHER = next(minor for minor in MINORS if minor != OWN)


def python_of(minor: str) -> PythonFacts:
    """Return the interpreter of a Python version on this machine."""
    found = _PYTHONS.find_version(minor)
    assert found is not None
    return found
