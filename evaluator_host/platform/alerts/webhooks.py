"""Sends the messages of alerts to webhooks, signed as standardwebhooks.com describes."""

import asyncio
import base64
import hashlib
import hmac
import re
from datetime import UTC, datetime
from functools import partial
from typing import Final
from urllib.parse import SplitResult

import httpx

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.lookups import LookupFailed, Lookups, written_address
from evaluator_host.platform.alerts.alert import Delivery
from evaluator_host.platform.models.access import PORTS, is_listed, make_http_client, proxy_for, require_url
from evaluator_host.platform.models.gateway.hosts import reachable
from evaluator_host.platform.store.secrets import Secrets
from evaluator_host.types.alerts import AlertRule
from evaluator_host.types.errors import HostError, InvalidRequest

_PUBLIC: Final = "public"  # word in EVALUATOR_HOST_WEBHOOK_HOSTS for every host whose addresses are public
_SEND_S: Final = 10.0
# host names that always mean this machine (RFC 6761)
_LOCALHOST: Final = re.compile(r"(?:.+\.)?localhost\.?", re.IGNORECASE)
refused = partial(InvalidRequest.of, what="alert")


class Webhooks:
    """The webhooks that alerts may call; `names` looks up the addresses of their hosts."""

    def __init__(self, settings: Settings, secrets: Secrets, names: Lookups) -> None:
        self._settings = settings
        self._secrets = secrets
        self._names = names

    async def require_webhook(self, workspace_id: str, rule: AlertRule) -> None:
        """Check a rule's secret and URL.

        Raises:
          InvalidRequest: the URL or the secret is not valid, or the operator does not allow the host.
          NotFound: there is no such secret.
        """
        if rule.secret is not None:
            _signing_key(await self._secrets.reveal(workspace_id, rule.secret))
        if rule.url is not None:
            # this checks only the form of the URL; the host name is looked up for each message
            self._require_form(rule.url)

    async def send(self, workspace_id: str, rule: AlertRule, message: Delivery) -> str | None:
        """Try once to send a message to the URL of the rule; return why it failed, or None if it was accepted."""
        to = str(rule.url)
        try:
            headers = {"Content-Type": "application/json", "User-Agent": "evaluator-host"}
            headers |= await self._signature(workspace_id, rule, message)
            parts = self._require_form(to)
            host, port = httpx.URL(to).host, parts.port or PORTS[parts.scheme]
            dial = partial(self._dial, workspace=workspace_id, listed=is_listed(parts, self._settings.webhook_hosts))
            async with asyncio.timeout(2 * _SEND_S):
                # if there is a proxy, the address is checked here, since a proxy does not check it
                if proxy_for(self._settings, host) is not None:
                    await dial(host, port)
                client = make_http_client(self._settings, to, timeout_s=_SEND_S, at_once=1, dial=dial)
                async with client:
                    request = client.build_request("POST", to, content=message.body, headers=headers)
                    answer = await client.send(request, stream=True)
                    await answer.aclose()
        except (
            HostError,
            httpx.HTTPError,
            LookupFailed,
            OSError,
        ) as error:  # `OSError` also catches `TimeoutError`
            return f"{type(error).__name__}: {getattr(error, 'detail', error)}"[:300]
        return None if answer.is_success else f"the webhook answered {answer.status_code}"

    async def _signature(self, workspace_id: str, rule: AlertRule, message: Delivery) -> dict[str, str]:
        """Sign a message as standardwebhooks.com describes. Return the HTTP headers that contain the signature."""
        at = str(int(datetime.now(UTC).timestamp()))
        headers = {"webhook-id": message.id, "webhook-timestamp": at}
        if rule.secret is None:
            return headers
        raw = _signing_key(await self._secrets.reveal(workspace_id, rule.secret))
        digest = hmac.digest(raw, f"{message.id}.{at}.{message.body}".encode(), hashlib.sha256)
        return {**headers, "webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}

    def _require_form(self, given: str) -> SplitResult:
        """Check a webhook's URL without looking up its host name, and return the parts of the URL.

        Raises:
          InvalidRequest: the URL is not valid, or the operator does not allow the host.
        """
        parts = require_url(given, field="url", path_only=False)
        host, allowed = httpx.URL(given).host, self._settings.webhook_hosts
        if is_listed(parts, allowed):
            return parts
        address = "127.0.0.1" if _LOCALHOST.fullmatch(host) else written_address(host)
        if _PUBLIC not in allowed or (address is not None and not reachable([address], ())):
            raise _not_allowed(host)
        return parts

    async def _dial(self, host: str, port: int, *, workspace: str, listed: bool) -> list[str]:
        """Return the addresses at which a webhook may be called: only public ones, unless its host is `listed`.

        Raises:
          LookupFailed: the host has no address, or has no public address and is not listed by the operator.
        """
        found = await self._names.look_up(host, port, workspace=workspace)
        if listed:
            return found
        if not (public := reachable(found, ())):
            raise LookupFailed(_not_allowed(host).detail)
        return public


def _not_allowed(host: str) -> InvalidRequest:
    hint = f'the operator can allow it with EVALUATOR_HOST_WEBHOOK_HOSTS=\'["public", "{host}"]\''
    return refused("url", f"alerts may not call {host}", hint)


def _signing_key(secret: str) -> bytes:
    """Return the signing key that a secret contains.

    Raises:
      InvalidRequest: the secret begins with `whsec_`, but the rest is not base64.
    """
    try:
        return base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    except ValueError as error:
        raise refused(
            "secret", "the text after whsec_ is not base64", "copy the whole secret again, as the receiver shows it"
        ) from error
