"""The store keeps keys and workspaces, on both databases."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from evaluator_host.platform.http.auth.keyring import Keyring
from evaluator_host.platform.store import database
from evaluator_host.platform.store.keys import Keys, key_id_of, token_hash
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.store.tables import WorkspaceTable
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound, Unauthorized
from tests.databases import opened_store

NOW = datetime.now(UTC)


async def test_a_key_is_shown_once_and_kept_as_a_hash(store: Store) -> None:
    key, token = await store.keys.create_key("ci", "acme")
    assert (key.name, key.workspace, key.expires_at, key.revoked_at, key.last_used_at) == (
        "ci",
        "acme",
        None,
        None,
        None,
    )
    assert NOW <= key.created_at <= datetime.now(UTC)
    assert await store.keys.list_keys() == [key]
    found = (await store.keys.credentials([key.id]))[key.id]
    assert found.token_hash == token_hash(token)
    assert key_id_of(token) == key.id
    secret = token.partition(key.id)[2].removeprefix("_")
    async with store.database.reading() as connection:
        kept = str((await connection.exec_driver_sql("SELECT * FROM api_keys")).all())
    assert token not in kept
    assert secret not in kept


async def test_tokens_are_long_random_and_told_from_garbage(store: Store) -> None:
    tokens = {(await store.keys.create_key(f"key-{n}", "acme"))[1] for n in range(20)}
    assert len(tokens) == 20
    assert all(len(token) >= 59 for token in tokens)
    token = tokens.pop()
    for garbage in (
        "",
        "eh_",
        token[:-1],
        token + "x",
        token.upper(),
        token.replace("eh_", "sk_"),
        f" {token}",
        token + "\n",
    ):
        assert key_id_of(garbage) is None, garbage


async def test_a_revoked_key_has_no_credential_and_frees_its_name(store: Store) -> None:
    key, _ = await store.keys.create_key("ci", "acme")
    with pytest.raises(NameTaken, match="ci"):
        await store.keys.create_key("ci", "acme")
    revoked = await store.keys.revoke("ci")
    assert revoked.revoked_at is not None
    assert revoked.id == key.id
    assert await store.keys.credentials([key.id]) == {}
    with pytest.raises(NotFound, match="keys list"):
        await store.keys.revoke("ci")
    again, _ = await store.keys.create_key("ci", "acme")
    assert {key.id, again.id} == {known.id for known in await store.keys.list_keys()}


async def test_a_name_that_several_workspaces_use_is_asked_about(store: Store) -> None:
    first, _ = await store.keys.create_key("ci", "acme")
    second, _ = await store.keys.create_key("ci", "globex")
    with pytest.raises(InvalidRequest, match=first.id):
        await store.keys.revoke("ci")
    assert (await store.keys.revoke("ci", workspace="acme")).id == first.id
    assert (await store.keys.revoke(second.id)).id == second.id


async def test_an_expired_key_is_not_usable(store: Store) -> None:
    assert not await store.keys.any_made()
    await store.keys.create_key("old", "acme", expires_at=NOW - timedelta(days=1))
    assert await store.keys.any_made()
    assert not await store.keys.any_usable()
    key, _ = await store.keys.create_key("new", "acme", expires_at=datetime.now(UTC) + timedelta(days=1))
    assert await store.keys.any_usable()
    assert [known.name for known in await store.keys.list_keys() if known.usable(datetime.now(UTC))] == ["new"]
    await store.keys.revoke(key.id)
    assert not await store.keys.any_usable()
    assert await store.keys.any_made(), "a host that has ever had a key must not open again by itself"


async def test_a_failed_creation_leaves_no_workspace(store: Store) -> None:
    for name, workspace in (("../etc", "acme"), ("ci", "a b"), ("", "acme"), ("ci", "x" * 64), ("-ci", "acme")):
        with pytest.raises(InvalidRequest, match="is not a name"):
            await store.keys.create_key(name, workspace)
    async with store.database.reading() as connection:
        assert list(await connection.scalars(select(WorkspaceTable.name))) == ["default"]


async def test_last_use_is_noted(store: Store) -> None:
    key, _ = await store.keys.create_key("ci", "acme")
    moment = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
    await store.keys.used({key.id: moment, "unknown": moment})
    (known,) = await store.keys.list_keys()
    assert known.last_used_at == moment


async def test_many_keys_are_looked_up_at_once(store: Store) -> None:
    keys = [(await store.keys.create_key(f"key-{n}", "acme"))[0] for n in range(3)]
    ids = [f"unknown{n}" for n in range(1200)] + [key.id for key in keys]
    assert set(await store.keys.credentials(ids)) == {key.id for key in keys}


async def test_a_keyring_sees_every_change_and_asks_no_file_that_nobody_wrote(
    store: Store, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_TICK_S", 0.05)
    asked: list[str] = []
    for name in ("any_made", "any_of_teams", "credentials"):
        monkeypatch.setattr(Keys, name, noted(asked, getattr(Keys, name)))
    keyring = Keyring(store.keys)

    async def asks() -> list[str]:
        """Wait until the time of the last write can be trusted, refresh the keyring once, and return its queries."""
        await asyncio.sleep(0.1)
        asked.clear()
        await keyring.refresh()
        return list(asked)

    is_file = database_url.startswith("sqlite")
    async with opened_store(database_url, tmp_path) as other:  # stands in for another host, or for the command line
        assert (await asks(), keyring.required) == (["any_made"], False)
        await asks()  # after this, the first connection has created its files
        assert await asks() == ([] if is_file else ["any_made"])
        await other.keys.create_key("own", "default")
        assert (await asks(), keyring.required) == (["any_made", "any_of_teams"], True)
        with pytest.raises(Unauthorized, match="keys reset --open"):
            await keyring.admit(None)
        key, token = await other.keys.create_key("ci", "acme")
        assert await asks() == ["any_of_teams"]
        with pytest.raises(Unauthorized, match=r"eh_…`$"):  # deleting every key would lock out a team
            await keyring.admit(None)
        caller = await keyring.admit(f"Bearer {token}")
        assert caller.key_id == key.id
        assert await asks() == ([] if is_file else ["credentials"])
        await other.keys.revoke("ci")
        assert await asks() == ["credentials"]
        with pytest.raises(Unauthorized):
            await keyring.admit(f"Bearer {token}")
        # with this, the file always counts as just written
        monkeypatch.setattr(database, "_TICK_S", 60.0)
        assert store.keys.mark() is None


def noted(asked: list[str], method: Any) -> Any:
    """Wrap a method, so that each call adds the name of the method to `asked`."""

    async def call(*args: Any) -> Any:
        asked.append(method.__name__)
        return await method(*args)

    return call


async def test_a_workspace_made_by_several_at_once_is_one(store: Store) -> None:
    made = await asyncio.gather(*(store.workspaces.ensure_workspace("acme") for _ in range(8)))
    assert len({workspace.id for workspace in made}) == 1
