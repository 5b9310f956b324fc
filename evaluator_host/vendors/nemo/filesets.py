"""NeMo's filesets: folders of uploaded files, and the rows in these files."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.readers import read_records
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.errors import InvalidRequest, NotFound, StoreUnavailable
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import type_name
from evaluator_host.vendors.nemo.blobs import BlobFolder
from evaluator_host.vendors.nemo.entities import Entities, Entity, EntityKind, Order, Place, split_ref
from evaluator_host.vendors.nemo.names import page_kept, require_name, require_path, shown, stamp

_CHANGEABLE: Final = ("description", "project", "purpose", "metadata", "custom_fields")


@dataclass(frozen=True, slots=True)
class RowsIn:
    """A file of rows: its path in the fileset, its path on this machine, and its format."""

    path: str
    file: Path
    format: Format

    def records(self, max_row_bytes: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of the file.

        Raises:
          InvalidRequest: a line is not a row; the message has the line number.
        """
        with self.file.open("rb") as opened:
            for line, record in read_records(opened, self.format, max_row_bytes=max_row_bytes):
                if isinstance(record, BadRow):
                    raise InvalidRequest(f"line {line} of {self.path} is not a row: {record}")
                if not isinstance(record, dict):
                    raise InvalidRequest(f"line {line} of {self.path} is {type_name(record)}, not an object")
                yield record


class Filesets:
    """The filesets of every workspace.

    Args:
      entities: Names and descriptions of the filesets.
      blobs: The content of the filesets' files.
      usage: Checks that a workspace may store more.
    """

    def __init__(self, entities: Entities, blobs: BlobFolder, usage: StorageUsage) -> None:
        self._entities = entities
        self._blobs = blobs
        self._usage = usage

    async def create(self, workspace_id: str, namespace: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Create a fileset, and return its description.

        Raises:
          InvalidRequest: the name is not valid.
          NotFound: there is no such namespace.
          NameTaken: there is a fileset with that name.
        """
        require_name(name, "fileset")
        return _shown(await self._entities.add_entity(_place(workspace_id, namespace), name, content))

    async def get(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return a fileset.

        Raises:
          NotFound: there is no fileset with that name.
        """
        return _shown(await self._entities.get_entity(_place(workspace_id, namespace), name))

    async def all(self, workspace_id: str, namespace: str, *, number: int, size: int, order: Order) -> dict[str, Any]:
        """Return page `number` (from 1) of the filesets in a namespace."""
        place = _place(workspace_id, namespace)
        return await page_kept(self._entities, place, _shown, number=number, size=size, order=order)

    async def change(self, workspace_id: str, namespace: str, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Change fields of a fileset, such as its description, and return it.

        Raises:
          NotFound: there is no fileset with that name.
        """
        place = _place(workspace_id, namespace)
        content = (await self._entities.get_entity(place, name)).content
        given = {key: changes[key] for key in _CHANGEABLE if changes.get(key) is not None}
        return _shown(await self._entities.change(place, name, {**content, **given}))

    async def delete(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Delete a fileset with its files, and return it. Jobs keep the rows that they copied.

        Raises:
          NotFound: there is no fileset with that name.
        """
        gone, files = await self._entities.delete_with(_place(workspace_id, namespace), name, within=EntityKind.FILE)
        for file in files:
            await asyncio.to_thread(self._blobs.remove, file.content["blob"])
        return _shown(gone)

    async def files(self, workspace_id: str, namespace: str, name: str, *, below: str = "") -> list[dict[str, Any]]:
        """Return the files of a fileset, sorted by path; with `below`, only the files in that folder.

        Raises:
          NotFound: there is no such fileset.
        """
        await self._entities.get_entity(_place(workspace_id, namespace), name)
        found = await self._entities.below(Place(workspace_id, EntityKind.FILE, namespace), f"{name}/")
        below = below.strip("/")

        def listed() -> list[dict[str, Any]]:
            files = (_file(one) for one in found)
            return [one for one in files if not below or f"{one['path']}/".startswith(f"{below}/")]

        return await asyncio.to_thread(listed)

    async def upload(
        self, workspace_id: str, namespace: str, name: str, path: str, *, chunks: AsyncIterator[bytes]
    ) -> dict[str, Any]:
        """Store a file, and return its description; an existing file with that path is replaced.

        Raises:
          InvalidRequest: the path is not valid.
          NotFound: there is no such fileset, or it was deleted during the upload.
          TooLarge: the file is over this host's limit.
          OverQuota: the workspace has reached its limit of stored bytes.
        """
        require_path(path)
        fileset = await self._entities.get_entity(_place(workspace_id, namespace), name)
        with self._usage.storing(workspace_id) as storing:
            blob = await self._blobs.receive(storing.metered(chunks))
        place, key = Place(workspace_id, EntityKind.FILE, namespace), f"{name}/{path}"
        content = {"fileset": name, "path": path, "blob": blob.id, "size": blob.size, "digest": blob.digest}
        try:
            kept, before = await self._entities.put_within(fileset, place, key, content)
        except Exception as error:
            # after StoreUnavailable the entity may have been stored, so a later sweep decides whether the file stays
            if not isinstance(error, StoreUnavailable):
                await asyncio.to_thread(self._blobs.remove, blob.id)
            raise
        if before is not None:
            await asyncio.to_thread(self._blobs.remove, before.content["blob"])
        return _file(kept)

    async def file(self, workspace_id: str, namespace: str, name: str, path: str) -> Path:
        """Return the path of a fileset's file on this machine.

        Raises:
          NotFound: there is no such file.
          StoreUnavailable: the file is in an object storage that does not answer.
        """
        found = await self._entities.get_entity(Place(workspace_id, EntityKind.FILE, namespace), f"{name}/{path}")
        return await asyncio.to_thread(self._blobs.copied, found.content["blob"])

    async def delete_file(self, workspace_id: str, namespace: str, name: str, path: str) -> dict[str, Any]:
        """Delete a file of a fileset, and return its description.

        Raises:
          NotFound: there is no such file.
        """
        gone = await self._entities.delete_entity(Place(workspace_id, EntityKind.FILE, namespace), f"{name}/{path}")
        await asyncio.to_thread(self._blobs.remove, gone.content["blob"])
        return _file(gone)

    async def row_files(self, workspace_id: str, namespace: str, reference: str) -> list[RowsIn]:
        """Return the files of `workspace/fileset`; `#data.jsonl` or `#2026/*.csv` at the end selects some of the files.

        Raises:
          InvalidRequest: the reference is not valid, or a file is not in a format for rows.
          NotFound: there is no such fileset or file.
        """
        whole, _, fragment = reference.partition("#")
        namespace, name = split_ref(whole, namespace=namespace, what="fileset")
        fragment = fragment.strip("/")
        listed = [one["path"] for one in await self.files(workspace_id, namespace, name)]
        wanted = [path for path in listed if not fragment or path == fragment or fnmatchcase(path, fragment)]
        if not wanted:
            has = ", ".join(listed[:8]) or "no files"
            raise NotFound(f"the fileset {namespace}/{name} has no file {fragment[:120]!r}; it has {has}")
        read = [(path, Format.of_name(path)) for path in wanted]
        return [RowsIn(path, await self.file(workspace_id, namespace, name, path), format_) for path, format_ in read]


def _place(workspace_id: str, namespace: str) -> Place:
    return Place(workspace_id, EntityKind.FILESET, namespace)


def _shown(entity: Entity) -> dict[str, Any]:
    content = entity.content
    return shown(
        entity,
        description=content.get("description") or "",
        project=content.get("project") or "",
        purpose=content.get("purpose") or "generic",
        metadata=content.get("metadata") or {},
        custom_fields=content.get("custom_fields") or {},
        storage={"type": "local", "path": f"{entity.namespace}/{entity.name}"},
    )


def _file(entity: Entity) -> dict[str, Any]:
    content = entity.content
    return {
        "path": content["path"],
        "size": content["size"],
        "file_ref": f"{entity.namespace}/{content['fileset']}#{content['path']}",
        "file_url": f"/apis/files/v2/workspaces/{entity.namespace}/filesets/{content['fileset']}/-/{content['path']}",
        "cache_status": "cached",
        "created_at": stamp(entity.created_at),
    }
