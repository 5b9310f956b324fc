"""What the JavaScript attacks share: limits of those that hang, and how they are seen to be ended."""

from dataclasses import replace
from typing import Final

from evaluator_host.model.evaluator import Limits
from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import BRIEF, Expected, fails

SHORT: Final[Limits] = replace(BRIEF, timeout_s=1.0)
"""A worker thread that is started anew takes longer than a forked process."""
STILL_HANGS: Final[Expected] = fails(ErrorCode.TIMEOUT, mentions="within 1 s")
"""It was ended at the limit of `SHORT`."""
