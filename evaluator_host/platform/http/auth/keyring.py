"""Finds the caller of a request by its key. Recently used keys are cached, and checked in the database every second.

An SQLite database is queried only if its file has changed since the last check. So a call with a cached key costs a
hash and a comparison, and a revoked key stops working within about a second, in every process on the same database. A
host that has never had a key treats every caller as its operator, and listens on loopback only.
"""

import asyncio
import hmac
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.platform.store.keys import Credential, Keys, key_id_of, token_hash
from evaluator_host.types.errors import StoreUnavailable, Unauthorized

REFRESH_S: Final = 1.0
_TRUSTED_S: Final = 10.0  # seconds after which a cached key is looked up again before it is used
_FORGOTTEN_S: Final = 60.0  # seconds without use after which a key leaves the cache
_LAST_USE_S: Final = 30.0  # seconds between two writes of the keys' last uses
# maximum number of look-ups at the same time; it is low, so that made-up keys cannot keep the database busy
_LOOKUPS: Final = 4
_MISSING: Final = (
    "this host needs a key: ask its operator for one (`evaluator-host keys create NAME`). Commands take it from "
    "`evaluator-host login URL`, requests from `Authorization: Bearer eh_…`"
)
_RESET: Final = ". If the host is yours, `evaluator-host keys reset --open` deletes every key"
_INVALID: Final = "this key does not work: it is unknown, revoked or expired"


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The sender of a request: a workspace, and the key. `key_id` is None on a host without keys."""

    workspace: str
    key_id: str | None = None


ANYONE: Final = KeyHolder(DEFAULT_WORKSPACE)


@dataclass(slots=True)
class _Known:
    credential: Credential
    caller: KeyHolder
    confirmed: float  # time of the last check, by time.monotonic()
    used: float


class Keyring:
    """The API keys of one host. Use it in one event loop only."""

    def __init__(self, keys: Keys) -> None:
        self.required = False
        self._has_teams = False  # whether a workspace other than `default` has ever had a key
        self._keys = keys
        self._mark: tuple[object, ...] | None = None  # the value of `Keys.mark` when the keys were last queried
        self._known: dict[str, _Known] = {}
        self._used: dict[str, datetime] = {}
        self._write_uses_at = 0.0
        self._lookups = asyncio.Semaphore(_LOOKUPS)

    async def admit(self, authorization: str | None) -> KeyHolder:
        """Return the caller of a request with this `Authorization` header; raise when the key is not valid.

        Raises:
          Unauthorized: the host needs a key, and this key is missing or does not work.
          StoreUnavailable: the key is not cached, and the database does not answer.
        """
        if not self.required:
            return ANYONE
        token = _bearer(authorization)
        if token is None:
            raise Unauthorized(_MISSING if self._has_teams else _MISSING + _RESET)
        key_id = key_id_of(token)
        if key_id is None:
            raise Unauthorized(_INVALID)
        now = time.monotonic()
        known = self._known.get(key_id)
        if known is None or now - known.confirmed > _TRUSTED_S:
            known = await self._look_up(key_id)
        if known is None or not hmac.compare_digest(known.credential.token_hash, token_hash(token)):
            raise Unauthorized(_INVALID)
        if known.credential.expires_at is not None and datetime.now(UTC) >= known.credential.expires_at:
            raise Unauthorized(_INVALID)
        known.used = now
        return known.caller

    async def refresh(self) -> None:
        """Check whether keys are required and whether cached keys still work; record when they were used.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        mark, now = self._keys.mark(), time.monotonic()
        changed = mark is None or mark != self._mark
        if changed and not self.required:
            self.required = await self._keys.any_made()
        if changed and self.required and not self._has_teams:
            self._has_teams = await self._keys.any_of_teams()
        for key_id in [key_id for key_id, known in self._known.items() if now - known.used > _FORGOTTEN_S]:
            self._forget(key_id)
        if not changed:
            for known in self._known.values():
                known.confirmed = now
        elif self._known:
            asked = list(self._known)
            valid = await self._keys.credentials(asked)
            for key_id in asked:
                if key_id in valid:
                    self._know(valid[key_id], asked_at=now)
                else:
                    self._forget(key_id)
        self._mark = mark
        if now >= self._write_uses_at:
            self._write_uses_at = now + _LAST_USE_S
            await self.write_uses()

    async def write_uses(self) -> None:
        """Record in the store when keys were last used.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        for key_id in self._known:
            self._note_use(key_id)
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await self._keys.used(used)
        except (StoreUnavailable, asyncio.CancelledError):
            self._used = used | self._used
            raise

    async def _look_up(self, key_id: str) -> _Known | None:
        async with self._lookups:
            asked_at = time.monotonic()
            found = await self._keys.credentials([key_id])
        if key_id not in found:
            self._forget(key_id)
            return None
        return self._know(found[key_id], asked_at=asked_at)

    def _know(self, credential: Credential, *, asked_at: float) -> _Known:
        known = self._known.get(credential.id)
        if known is None:
            caller = KeyHolder(credential.workspace_id, credential.id)
            known = self._known[credential.id] = _Known(credential, caller, asked_at, used=-_FORGOTTEN_S)
            known.used = asked_at
        known.credential, known.confirmed = credential, asked_at
        return known

    def _forget(self, key_id: str) -> None:
        if key_id in self._known:
            self._note_use(key_id)
            del self._known[key_id]

    def _note_use(self, key_id: str) -> None:
        ago = time.monotonic() - self._known[key_id].used
        self._used[key_id] = datetime.fromtimestamp(time.time() - ago, UTC)


def _bearer(authorization: str | None) -> str | None:
    """Return the token of an `Authorization` header, or None if it has no bearer token."""
    scheme, _, token = (authorization or "").partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None
