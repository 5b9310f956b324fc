"""Chooses the user id with which a sandboxed program, or a build, runs on this machine."""

import os
import random
from pathlib import Path
from typing import Final

from evaluator_host.engine.sandbox.bubblewrap.policy import NOBODY, Identity

# These ids are far above those that distributions, containers and systemd use (systemd uses ids up to 1,879,048,191).
_UIDS: Final = range(1_900_000_000, 2_147_000_000)
_FEW_UIDS: Final = range(20_000, 60_000)  # for a container whose user namespace has only 65,536 user ids


def choose_identity() -> Identity:
    """Return the user for the next sandbox: `nobody` in a user namespace, or a random user id if the host is root."""
    if os.geteuid() != 0:
        return Identity()
    # The id is drawn at random from 247 million ids. If two sandboxes draw the same id, their namespaces still
    # separate them.
    mapped = Path("/proc/self/uid_map").read_text()
    for uids in (_UIDS, _FEW_UIDS):
        if _covers(mapped, uids):
            return Identity(random.choice(uids), drop=True)  # noqa: S311 - not a secret
    return Identity(NOBODY, drop=True)


def _covers(uid_map: str, uids: range) -> bool:
    for line in uid_map.splitlines():
        first, _, count = map(int, line.split())
        if first <= uids.start and uids.stop <= first + count:
            return True
    return False
