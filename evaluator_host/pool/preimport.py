"""What waiting sandboxes do ahead of a load: which import their packages, and which sets went wrong when they did."""

import logging
import time
from collections import OrderedDict
from typing import Final

from evaluator_host.model.evaluator import Language, SandboxSpec
from evaluator_host.sandbox.session import Sandbox

_log = logging.getLogger(__name__)

WORTH_MS: Final = 20.0  # what a first call costs without packages: what takes less is left to the load
MOST_S: Final = 10.0  # of importing, for every sandbox that waits, is not cheap
_BASE_S: Final = 2.0
_FACTOR: Final = 2.0  # a machine may be busier than when the set was checked
_AGAIN_AFTER_S: Final = 1800.0
_REMEMBERED: Final = 256


class Ahead:
    """Has waiting sandboxes get ready for a load: the process for it made, packages imported where that is cheap.

    A package set that went wrong is left alone for half an hour.
    """

    def __init__(self) -> None:
        self._left_alone: OrderedDict[SandboxSpec, float] = OrderedDict()

    def modules(self, spec: SandboxSpec) -> tuple[str, ...] | None:
        """Return what to import, perhaps nothing; None when nothing at all should be done ahead."""
        if spec.language is not Language.PYTHON or self._is_left_alone(spec):
            return None
        own = () if spec.stand_in is None else (spec.stand_in.preimport,)
        if _total_ms(spec) < WORTH_MS:
            return own
        return (*(name for name, _ in spec.environment.import_ms), *own)

    async def prepare(self, sandbox: Sandbox) -> str | None:
        """Get a sandbox ready; returns why no load should go on from that, or None when one may."""
        modules = self.modules(sandbox.spec)
        if modules is None:
            return None
        timeout_s = _BASE_S + _FACTOR * _total_ms(sandbox.spec) / 1000
        return await sandbox.prepare(modules, timeout_s=min(timeout_s, MOST_S))

    def leave_alone(self, spec: SandboxSpec, reason: str) -> None:
        """Do not try this again soon: `modules` returns nothing for it."""
        _log.info("packages of %s are not imported ahead: %s", spec.environment.digest[:19], reason)
        self._left_alone[spec] = time.monotonic() + _AGAIN_AFTER_S
        self._left_alone.move_to_end(spec)
        while len(self._left_alone) > _REMEMBERED:
            self._left_alone.popitem(last=False)

    def _is_left_alone(self, spec: SandboxSpec) -> bool:
        return self._left_alone.get(spec, 0.0) > time.monotonic()


def _total_ms(spec: SandboxSpec) -> float:
    return sum(taken for _, taken in spec.environment.import_ms)
