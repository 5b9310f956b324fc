"""Sandboxes of Daytona as this host has them: records with labels, environment and packages, in memory.

A record holds nothing that runs: each script runs in a warm sandbox of the host. So a record costs a few hundred bytes,
and is forgotten a day after its last use, or when its workspace has more than it may.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from evaluator_host.model.errors import NotFound
from evaluator_host.model.evaluator import Json

LANGUAGE: Final = "code-toolbox-language"
_MOST: Final = 500  # of one workspace
_FORGOTTEN_S: Final = 86400.0
_TEXT_CHARS: Final = 64 << 10  # of environment and labels together
_INTERVALS: Final = ("autoStopInterval", "autoArchiveInterval", "autoDeleteInterval", "autoPauseInterval")


@dataclass(slots=True)
class Record:
    """One sandbox.

    Attributes:
      workspace: Whose it is.
      env: Variables of the environment of its scripts.
      labels: Of its maker; `code-toolbox-language` says the language.
      asked: The other fields of its making, to be told again.
      packages: Pins that were installed in it, by `python` and `javascript`.
    """

    workspace: str
    env: dict[str, str]
    labels: dict[str, str]
    asked: dict[str, Json]
    id: str = field(default_factory=lambda: str(uuid4()))
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: float = field(default_factory=time.monotonic)
    made_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())

    def told(self, toolbox: str) -> dict[str, Json]:
        """Return it as the newest client wants it, which refuses an answer without a field that it knows."""
        return {
            "id": self.id,
            "organizationId": self.workspace,
            "name": str(self.asked.get("name") or self.id),
            "snapshot": self.asked.get("snapshot"),
            "user": "daytona",
            "env": self.env,
            "labels": self.labels,
            "public": False,
            "networkBlockAll": True,
            "kvm": False,
            "target": str(self.asked.get("target") or "eu"),
            "cpu": 1,
            "gpu": 0,
            "spot": False,
            "memory": 1,
            "disk": 1,
            "state": "started",
            "desiredState": "started",
            "recoverable": False,
            "backupState": "None",
            "volumes": [],
            **{name: self.asked[name] for name in _INTERVALS if self.asked.get(name) is not None},
            "createdAt": self.made_at,
            "updatedAt": self.made_at,
            "sandboxClass": "small",
            "toolboxProxyUrl": toolbox,
        }


class Records:
    """The sandboxes of one host, by workspace."""

    def __init__(self) -> None:
        self._by_workspace: dict[str, dict[str, Record]] = {}

    def create(self, workspace: str, body: dict[str, Any]) -> Record:
        """Return a new sandbox; the one that was not used for longest makes room for it.

        Raises:
          ValueError: env or labels are no texts by name, or too large.
        """
        env, labels = _texts(body.get("env"), "env"), _texts(body.get("labels"), "labels")
        if sum(len(name) + len(text) for name, text in (*env.items(), *labels.items())) > _TEXT_CHARS:
            raise ValueError(f"env and labels have over {_TEXT_CHARS >> 10} KB")
        asked = {name: body[name] for name in ("name", "snapshot", "target", *_INTERVALS) if _is_small(body.get(name))}
        record = Record(workspace, env, labels, asked)
        own = self._by_workspace.setdefault(workspace, {})
        old = time.monotonic() - _FORGOTTEN_S
        for one in [one for one in own.values() if one.used < old]:
            del own[one.id]
        if len(own) >= _MOST:
            del own[min(own.values(), key=lambda one: one.used).id]
        own[record.id] = record
        return record

    def get(self, workspace: str, id_or_name: str) -> Record:
        """Return a sandbox by id or name.

        Raises:
          NotFound: there is none.
        """
        own = self._by_workspace.get(workspace, {})
        found = own.get(id_or_name) or next((one for one in own.values() if one.asked.get("name") == id_or_name), None)
        if found is None:
            raise NotFound(f"Sandbox with ID or name {id_or_name[:80]} not found")
        found.used = time.monotonic()
        return found

    def list(self, workspace: str, labels: dict[str, Json]) -> list[Record]:
        """Return the sandboxes that have all of these labels, the newest last."""
        own = self._by_workspace.get(workspace, {}).values()
        return [one for one in own if all(one.labels.get(name) == text for name, text in labels.items())]

    def delete(self, record: Record) -> None:
        """Forget a sandbox."""
        self._by_workspace[record.workspace].pop(record.id, None)


def _texts(given: Any, name: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(text, str) and "\0" not in text for text in given.values()):
        raise ValueError(f"{name} must be an object of texts")
    return given


def _is_small(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 255)
