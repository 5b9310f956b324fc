"""Light modules that replace `arize-phoenix-evals` (as in release 3.9.4), for code evaluators only.

Several distributions share the package name `phoenix`. The evaluator's pinned distributions are found before these
modules.
"""

import sys

__pin__ = "arize-phoenix==20.26.1"
__pins__ = {
    "evals": "arize-phoenix-evals==3.9.4",
    "client": "arize-phoenix-client==3.5.0",
    "otel": "arize-phoenix-otel==0.17.2",
}
__path__[:0] = [f"{folder}/phoenix" for folder in sys.path if folder and f"{folder}/phoenix" not in __path__]
