"""Makes an evaluator, its packages and its modules importable in a Python process that the evaluator starts.

The runner puts this folder on PYTHONPATH, so that the interpreter imports this module when it starts
(`evaluator_runner/children.py`).
"""

import os
import sys


def _extend() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    if here in sys.path:
        sys.path.remove(here)
    for folder in filter(None, os.environ.get("EVALUATOR_IMPORTS", "").split(os.pathsep)):
        if folder in sys.path:
            continue
        if any(name.endswith(".pth") for name in os.listdir(folder)):
            import site

            site.addsitedir(folder)
        else:
            sys.path.append(folder)
    code = os.environ.get("EVALUATOR_CODE")
    if code and os.path.exists(code):
        sys.path.insert(0, os.path.dirname(here))
        from evaluator_runner import children

        del sys.path[0]
        children.install(code)


_extend()
