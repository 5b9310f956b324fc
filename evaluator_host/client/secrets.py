"""Verbs over secrets: `client.secrets`."""

from types import NoneType

from evaluator_host.client.calls import Call, encode, path_part
from evaluator_host.client.transport import TransportT, Verbs, verb
from evaluator_host.schemas.secrets import SecretReport


class SecretVerbs(Verbs[TransportT]):
    """Secrets of the key's workspace. The host never shows a value again."""

    @verb
    async def set(self, name: str, value: str) -> SecretReport:
        """Store a secret; it replaces the one of that name, if there is one.

        Args:
          name: What targets and judges name it by.
          value: 8 to 8192 characters of ASCII on one line.

        Raises:
          InvalidRequest: the name or the value cannot be one.
        """
        call = Call("PUT", f"/v1/secrets/{path_part(name)}", SecretReport, encode({"value": value}))
        return await self._transport.send(call)

    @verb
    async def all(self) -> list[SecretReport]:
        """Return the secrets by name, without their values."""
        return await self._transport.send(Call("GET", "/v1/secrets", list[SecretReport]))

    @verb
    async def get(self, name: str) -> SecretReport:
        """Return when a secret was made and changed, without its value.

        Args:
          name: Name of the secret.

        Raises:
          NotFound: there is none of that name.
        """
        return await self._transport.send(Call("GET", f"/v1/secrets/{path_part(name)}", SecretReport))

    @verb
    async def delete(self, name: str) -> None:
        """Remove a secret. Jobs that still need it fail.

        Args:
          name: Name of the secret.

        Raises:
          NotFound: there is none of that name.
        """
        await self._transport.send(Call("DELETE", f"/v1/secrets/{path_part(name)}", NoneType))
