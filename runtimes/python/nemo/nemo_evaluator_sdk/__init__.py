"""Owns the names that metrics written for NeMo Evaluator import: the same behaviour, without its 190 dependencies.

It is for scoring outputs that are there already. What needs a model, a platform or a remote service is not in here;
an evaluator that pins the real package gets that one instead.
"""

from .exports import *  # noqa: F403
from .exports import __all__  # noqa: F401
