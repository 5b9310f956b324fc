"""The Python version on which the tests run, and the other Python versions on this machine."""

import sys

from evaluator_host.engine.config.settings import python_homes, search_path
from evaluator_host.engine.sandbox.pythons import Pythons

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
MINORS = Pythons(search_path=search_path(), homes=python_homes()).minors()
OTHER = next(minor for minor in MINORS if minor != OWN)
