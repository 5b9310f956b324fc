"""Whose a request is. Keys that were used lately are known without asking the database, and asked about every second.

So a warm call costs a hash and a comparison, and a key that is revoked, here or by another process, stops working in
about a second. A host that has never had a key takes every caller for its operator; it then listens on loopback only.
"""

import asyncio
import hmac
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from evaluator_host.model.errors import StoreUnavailable, Unauthorized
from evaluator_host.service.service import DEFAULT_WORKSPACE
from evaluator_host.store.key_format import key_id_of, token_hash
from evaluator_host.store.keys import Credential, Keys

REFRESH_S: Final = 1.0
_TRUSTED_S: Final = 10.0  # a key that the database has not confirmed for so long is asked about before it is used
_FORGOTTEN_S: Final = 60.0  # unused for so long: not asked about any more
_LAST_USE_S: Final = 30.0  # how often uses are written
_LOOKUPS: Final = 4  # at once, so that made-up keys cannot occupy the database
_MISSING: Final = (
    "this host needs a key: send it as `Authorization: Bearer eh_…`. "
    "Its operator makes one with `evaluator-host keys create NAME`"
)
_INVALID: Final = "this key does not work here: it is unknown, revoked or expired"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose a request is: everything it sees and makes is its workspace's. No key: a host that needs none."""

    workspace: str
    key_id: str | None = None


ANYONE: Final = Caller(DEFAULT_WORKSPACE)


@dataclass(slots=True)
class _Known:
    """A key that was used lately."""

    credential: Credential
    caller: Caller
    confirmed: float  # by time.monotonic()
    used: float


class Keyring:
    """The keys of one host, by their tokens. Bound to one event loop."""

    def __init__(self, keys: Keys) -> None:
        self.required = False
        self._keys = keys
        self._known: dict[str, _Known] = {}
        self._used: dict[str, datetime] = {}
        self._write_uses_at = 0.0
        self._lookups = asyncio.Semaphore(_LOOKUPS)

    async def admit(self, authorization: str | None) -> Caller:
        """Return whose a request with this `Authorization` header is.

        Raises:
          Unauthorized: a key is needed, and this is none that works.
          StoreUnavailable: the key is not known yet, and the database does not answer.
        """
        if not self.required:
            return ANYONE
        token = _bearer(authorization)
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
        """Ask whether keys are needed and whether those used lately still work; note when they were used.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        if not self.required:
            self.required = await self._keys.any_made()
        now = time.monotonic()
        for key_id in [key_id for key_id, known in self._known.items() if now - known.used > _FORGOTTEN_S]:
            self._forget(key_id)
        if self._known:
            asked = list(self._known)
            valid = await self._keys.credentials(asked)
            for key_id in asked:
                if key_id in valid:
                    self._know(valid[key_id], asked_at=now)
                else:
                    self._forget(key_id)
        if now >= self._write_uses_at:
            self._write_uses_at = now + _LAST_USE_S
            await self.write_uses()

    async def write_uses(self) -> None:
        """Note in the store when keys were last used.

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
        except StoreUnavailable:
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
            caller = Caller(credential.workspace_id, credential.id)
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


def _bearer(authorization: str | None) -> str:
    """Return the token of a header.

    Raises:
      Unauthorized: there is none.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(_MISSING)
    return token.strip()
