"""Metrics of NeMo Evaluator in one's own process: `from evaluator_host.sdk import Evaluator, ExactMatchMetric, …`.

These are the very modules that sandboxes have (`runtimes/python/nemo`), submodules included, under this name.
"""

from evaluator_host.config import RUNTIMES_DIR

__path__.append(str(RUNTIMES_DIR / "python" / "nemo" / "nemo_evaluator_sdk"))

from evaluator_host.sdk.exports import *  # noqa: E402, F403
from evaluator_host.sdk.exports import __all__  # noqa: E402, F401
