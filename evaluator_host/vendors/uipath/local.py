"""Import this module to test UiPath evaluators on your machine without UiPath's package.

The import makes the host's light modules available: small modules that replace the package.

Use this module as a plugin of pytest, `pytest -p evaluator_host.vendors.uipath.local`, or import it in a `conftest.py`.
The light modules need opentelemetry-sdk. An installed package `uipath` takes precedence.
"""

import sys

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.vendors.uipath.dialect import SDK

_FOLDER = str(RUNTIMES_DIR / "python" / SDK.stand_in.folder)

if _FOLDER not in sys.path:
    sys.path.append(_FOLDER)
