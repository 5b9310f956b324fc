"""Each stored secret is encrypted and bound to its workspace and name, and the store records which key encrypted it."""

import base64
import os
import stat
from pathlib import Path

import pytest
from sqlalchemy import select, update

from evaluator_host.platform.store.secrets import SecretBox
from evaluator_host.platform.store.store import Store, open_store
from evaluator_host.platform.store.tables import SecretTable
from evaluator_host.types.errors import InvalidRequest, Misconfigured, NotFound

VALUE = "sk-proj-0123456789abcdef"
WORKSPACE = "default"


async def test_a_secret_is_set_listed_replaced_and_removed(store: Store) -> None:
    made = await store.secrets.set_secret(WORKSPACE, "openai", VALUE)
    assert await store.secrets.reveal(WORKSPACE, "openai") == VALUE
    again = await store.secrets.set_secret(WORKSPACE, "openai", "another value")
    assert again.created_at == made.created_at
    assert again.updated_at > made.updated_at
    await store.secrets.set_secret(WORKSPACE, "anthropic", VALUE)
    assert [one.name for one in await store.secrets.list_secrets(WORKSPACE)] == ["anthropic", "openai"]
    assert await store.secrets.get_secret(WORKSPACE, "openai") == again
    assert await store.secrets.reveal(WORKSPACE, "openai") == "another value"
    await store.secrets.delete_secret(WORKSPACE, "openai")
    for gone in (store.secrets.reveal, store.secrets.get_secret, store.secrets.delete_secret):
        with pytest.raises(NotFound, match="no secret openai"):
            await gone(WORKSPACE, "openai")


async def test_workspaces_do_not_see_each_others_secrets(store: Store) -> None:
    other = (await store.workspaces.ensure_workspace("other")).id
    await store.secrets.set_secret(WORKSPACE, "openai", VALUE)
    assert await store.secrets.list_secrets(other) == []
    with pytest.raises(NotFound):
        await store.secrets.reveal(other, "openai")
    with pytest.raises(NotFound):
        await store.secrets.delete_secret(other, "openai")


async def test_a_secret_is_encrypted_anew_each_time(store: Store) -> None:
    found = []
    for _ in range(2):
        await store.secrets.set_secret(WORKSPACE, "openai", VALUE)
        async with store.database.reading() as connection:
            found.append(await connection.scalar(select(SecretTable.sealed)))
    assert found[0] != found[1]
    assert VALUE.encode() not in found[0] + found[1]


async def test_a_sealed_value_moved_to_another_place_does_not_open(store: Store) -> None:
    other = (await store.workspaces.ensure_workspace("other")).id
    await store.secrets.set_secret(WORKSPACE, "openai", VALUE)
    for workspace, name in ((WORKSPACE, "mine"), (other, "openai")):
        await store.secrets.set_secret(workspace, name, "something else")
        moved = select(SecretTable.sealed).where(SecretTable.workspace_id == WORKSPACE, SecretTable.name == "openai")
        async with store.database.transaction() as connection:
            sealed = await connection.scalar(moved)
            there = (SecretTable.workspace_id == workspace) & (SecretTable.name == name)
            await connection.execute(update(SecretTable).where(there).values(sealed=sealed))
        with pytest.raises(Misconfigured, match="damaged"):
            await store.secrets.reveal(workspace, name)


async def test_another_key_opens_nothing_and_the_error_says_what_to_do(database_url: str, tmp_path: Path) -> None:
    keys = [base64.b64encode(os.urandom(32)).decode() for _ in range(2)]
    async with open_store(database_url, tmp_path, secrets_key=keys[0]) as store:
        await store.secrets.set_secret(WORKSPACE, "openai", VALUE)
        assert not (tmp_path / "secrets.key").exists()
    async with open_store(database_url, tmp_path, secrets_key=keys[1]) as store:
        with pytest.raises(
            Misconfigured, match=r"a key that this host does not have .*EVALUATOR_HOST_SECRETS_KEY.*secrets set openai"
        ) as wrong:
            await store.secrets.reveal(WORKSPACE, "openai")
        assert keys[1] not in str(wrong.value)
    async with open_store(database_url, tmp_path) as store:
        with pytest.raises(Misconfigured, match="no key to decrypt its secrets"):
            await store.secrets.reveal(WORKSPACE, "openai")
        assert not (tmp_path / "secrets.key").exists()
        await store.secrets.set_secret(WORKSPACE, "openai", "a new value")
        assert await store.secrets.reveal(WORKSPACE, "openai") == "a new value"


def test_the_key_file_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "data" / "secrets.key"
    sealed = SecretBox(None, file.parent).seal(VALUE, workspace_id="w", name="n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SecretBox(None, file.parent).open(sealed, workspace_id="w", name="n") == VALUE
    assert [path.name for path in file.parent.iterdir()] == ["secrets.key"]
    file.chmod(0o640)
    with pytest.raises(Misconfigured, match="chmod 600"):
        SecretBox(None, file.parent).open(sealed, workspace_id="w", name="n")


async def test_a_new_key_in_the_file_encrypts_and_the_old_one_still_opens(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    async with open_store(database_url, tmp_path) as running, open_store(database_url, tmp_path) as command:
        other = (await running.workspaces.ensure_workspace("other")).id
        await running.secrets.set_secret(WORKSPACE, "openai", VALUE)
        await running.secrets.set_secret(other, "openai", "another value")
        old = file.read_text().split()
        done = await command.secrets.rotate_key()
        assert (done.added, done.resealed, done.closed, done.dropped) == (True, 2, (), 0)
        assert file.read_text().split()[1:] == old
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        await running.secrets.set_secret(WORKSPACE, "later", VALUE)  # a host that already runs uses the new key
        done = await command.secrets.rotate_key(drop_old=True)
        assert (done.added, done.resealed, done.closed, done.dropped) == (False, 0, (), 1)
        assert not set(file.read_text().split()) & set(old)
        for workspace, name, value in ((WORKSPACE, "openai", VALUE), (other, "openai", "another value")):
            assert await running.secrets.reveal(workspace, name) == value
        assert await running.secrets.reveal(WORKSPACE, "later") == VALUE


@pytest.mark.sampled(2)
async def test_keys_of_the_settings_rotate_by_putting_a_new_one_first(database_url: str, tmp_path: Path) -> None:
    old, new, lost = (base64.b64encode(os.urandom(32)).decode() for _ in range(3))
    async with open_store(database_url, tmp_path, secrets_key=lost) as store:
        await store.secrets.set_secret(WORKSPACE, "foreign", VALUE)
    async with open_store(database_url, tmp_path, secrets_key=old) as store:
        await store.secrets.set_secret(WORKSPACE, "openai", VALUE)
    async with open_store(database_url, tmp_path, secrets_key=f"{new}, {old}") as store:
        assert await store.secrets.reveal(WORKSPACE, "openai") == VALUE
        done = await store.secrets.rotate_key()
        assert (done.added, done.resealed, done.closed) == (False, 1, (f"{WORKSPACE}/foreign",))
        with pytest.raises(Misconfigured, match="EVALUATOR_HOST_SECRETS_KEY"):
            await store.secrets.rotate_key(drop_old=True)
    async with open_store(database_url, tmp_path, secrets_key=new) as store:
        assert await store.secrets.reveal(WORKSPACE, "openai") == VALUE
    async with open_store(database_url, tmp_path, secrets_key=lost) as store:
        assert await store.secrets.reveal(WORKSPACE, "foreign") == VALUE, (
            "a secret that no key opens must stay as it was"
        )
    assert not (tmp_path / "secrets.key").exists()


@pytest.mark.parametrize("given", ["", "short", base64.b64encode(b"x" * 31).decode(), "ü" * 44])
def test_a_setting_that_is_not_a_key_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="EVALUATOR_HOST_SECRETS_KEY is not a key"):
        SecretBox(given, tmp_path).seal(VALUE, workspace_id="w", name="n")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "value", ["short", "x" * 8193, "two\nlines of it", "schlüssel-123", " spaces around ", "bell\x07bell"]
)
async def test_an_invalid_value_is_refused_without_repeating_it(store: Store, value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await store.secrets.set_secret(WORKSPACE, "openai", value)
    assert value not in str(refused.value)
    assert await store.secrets.list_secrets(WORKSPACE) == []


async def test_a_name_that_is_not_valid_is_refused(store: Store) -> None:
    for sought in (store.secrets.reveal, store.secrets.delete_secret):
        with pytest.raises(NotFound):
            await sought(WORKSPACE, "a\0b")
    with pytest.raises(InvalidRequest, match="not a name for a secret"):
        await store.secrets.set_secret(WORKSPACE, "a/b", VALUE)
