"""Metrics of NeMo Evaluator in your own process: `from evaluator_host.sdk import Evaluator, ExactMatchMetric, …`.

The modules are the same as in sandboxes (`runtimes/python/dialects/nemo/modules`), submodules included. The class
`Evaluator` is replaced by a class that also runs metrics in sandboxes and on a host.
"""

from typing import Any

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.vendors.nemo.dialect import SDK

__path__.append(str(RUNTIMES_DIR / "python" / SDK.stand_in.folder / SDK.module))

from evaluator_host.sdk.exports import *  # noqa: E402, F403
from evaluator_host.sdk.exports import __all__ as __all__  # noqa: E402
from evaluator_host.vendors.nemo.sdk import runs  # noqa: E402

Evaluator = runs.Evaluator  # replaces the `Evaluator` of the exports

_OF_A_HOST = {"NoSource": "source", "Sandboxes": "sandboxes", "Submission": "submission"}


def __getattr__(name: str) -> Any:
    """Import a rarely used name on first use, because its import also imports a whole host."""
    if name not in _OF_A_HOST:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above

    return getattr(import_module(f"evaluator_host.vendors.nemo.sdk.{_OF_A_HOST[name]}"), name)
