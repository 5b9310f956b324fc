"""Checks the database, and the files that belong to it, for `doctor`. Only the checks import SQLAlchemy and Alembic."""

import asyncio
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.config.settings import Settings, revealed
from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.types.errors import HostError, Misconfigured, refusal_of
from evaluator_host.types.names import counted

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

_EMPTY: Final = "has no tables yet; the first host that starts creates them"
_NEW: Final = (
    "does not exist yet; the first host that starts creates it. If a host has stored data before, name its folder with "
    "--data-dir or EVALUATOR_HOST_DATA_DIR"
)
_NAMED: Final = 3  # maximum number of secrets that a message names


async def database_findings(settings: Settings) -> list[Finding]:
    """Return the `doctor` findings about the database, and about the files that belong to it; never raises."""
    from evaluator_host.platform.datasets.opening import orphan_files  # noqa: PLC0415 - SQLAlchemy and Alembic
    from evaluator_host.platform.store import (  # noqa: PLC0415 - as above
        database,
        store,
        usage,
        watch,
    )

    url = revealed(settings.database_url)
    disk = Finding("free disk", ok=True, detail=f"over {settings.free_disk_mb} MB (EVALUATOR_HOST_FREE_DISK_MB)")
    try:
        usage.Quota(reserve_bytes=settings.free_disk_mb << 20, data_dir=settings.data_dir).require_disk()
    except HostError as error:
        refused = "the host refuses uploads and new packages, and pauses jobs"
        disk = Finding(disk.name, ok=False, detail=f"{refused}: {error.detail}")
    try:
        address = database.address(url, settings.data_dir)
        is_new = address.file is not None and not address.file.exists()
        await asyncio.to_thread(watch.require_usable, address)
        await asyncio.to_thread(watch.require_not_emptied, address, settings.data_dir)
        async with store.open_read_only(url, settings.data_dir) as found:
            state = "serves" if found is not None else _NEW if is_new else _EMPTY
            files = await orphan_files(settings).finding(found, address)
            secrets = await _secrets_finding(settings, found)
            workspaces = await _workspace_findings(settings, found)
    except (HostError, OSError) as error:
        detail = refusal_of(error)
        return [disk, Finding("database", ok=False, detail=detail), await _secrets_finding(settings, None)]
    return [disk, Finding("database", ok=True, detail=f"{address} {state}"), files, secrets, *workspaces]


async def _workspace_findings(settings: Settings, store: "Store | None") -> list[Finding]:
    """Return a finding for each workspace that the settings name but that does not exist."""
    from evaluator_host.platform.models.gateway.operator_grants import OperatorGrants  # noqa: PLC0415 - as above

    if store is None:
        return []
    problems = await OperatorGrants(settings, store.workspaces).problems()
    return [Finding("workspaces", ok=False, detail=problem) for problem in problems]


async def _secrets_finding(settings: Settings, store: "Store | None") -> Finding:
    """Return the finding about secrets: whether the encryption keys can be read and decrypt all stored secrets."""
    from evaluator_host.platform.store.secrets import SecretBox  # noqa: PLC0415 - as above

    try:
        marks = await asyncio.to_thread(SecretBox(revealed(settings.secrets_key), settings.data_dir).marks)
    except Misconfigured as error:
        return Finding("secrets", ok=False, detail=error.detail, fix="restore the file secrets.key from a backup")
    closed = await store.secrets.list_closed(marks) if store is not None else []
    if closed:
        more = " …" if len(closed) > _NAMED else ""
        detail = f"no key of this host can decrypt {', '.join(closed[:_NAMED])}{more}"
        fix = "give this host the key that encrypted them (restore secrets.key from a backup), or set them again"
        return Finding("secrets", ok=False, detail=detail, fix=fix)
    open_all = f"every secret can be decrypted, with {counted(len(marks), 'key')}"
    detail = open_all if marks else "there are no secrets yet; the first `secrets set` creates a key"
    return Finding("secrets", ok=True, detail=detail)
