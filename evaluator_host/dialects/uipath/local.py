"""Importing this module makes UiPath's light modules importable, for testing one's own evaluators locally.

As a plugin of pytest, `pytest -p evaluator_host.dialects.uipath.local`, or in a `conftest.py`. They need
opentelemetry-sdk. A package `uipath` that is installed comes first.
"""

import sys

from evaluator_host.config.settings import RUNTIMES_DIR
from evaluator_host.dialects.uipath.dialect import SDK

_FOLDER = str(RUNTIMES_DIR / "python" / SDK.stand_in.folder)

if _FOLDER not in sys.path:
    sys.path.append(_FOLDER)
