"""`backup` and `restore`: copy a host's database, data sets, files and secrets key to one file, and back."""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

import typer

from evaluator_host import __version__
from evaluator_host.engine.config.settings import revealed
from evaluator_host.engine.sandbox.linux.instance import instance_folder, remove_abandoned
from evaluator_host.engine.system.tree import walk
from evaluator_host.platform.store.backup import copy_database, restore_database
from evaluator_host.platform.store.database import address
from evaluator_host.platform.store.schema import migrate, revisions_of
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, plain
from evaluator_host.platform.terminal.local_store import require_data, require_own_folder
from evaluator_host.types.errors import InvalidRequest, Misconfigured
from evaluator_host.types.numbers import size_text

# copied after the database, so that the backup contains every file to which the database refers
_FOLDERS: Final = ("data", "datasets", "filesets")
_KEYS: Final = "secrets.key"
_DATABASE: Final = "database"
_MANIFEST: Final = "manifest.json"
_MADE: Final = "backup.tar"
# Prefixes of the commands' working folders. If a command is killed, the next one removes its folder.
_BACKING_UP: Final = "evaluator-host-backup-"
_RESTORING: Final = "evaluator-host-restore-"
# Paths that a backup leaves out: unfinished uploads, and links to data files, which the host makes for sandboxes.
_LEFT_OUT: Final = re.compile(r"data/[^/]+/layouts/.+|(?:data/[^/]+/files|filesets)/partial-.+|datasets/[^/]+\..+")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup, a new .tar file.")],
    *,
    data_dir: options.DataDirOption = None,
) -> None:
    """Copy the database, data sets, files and the key that encrypts secrets to one file, while the host runs."""
    settings = load_settings(data_dir=data_dir)
    kept = address(revealed(settings.database_url), settings.data_dir)
    require_data(settings)
    if file.exists():
        raise InvalidRequest(f"{file} already exists; choose another file name")
    try:
        remove_abandoned(_BACKING_UP, file.parent)
        with instance_folder(_BACKING_UP, file.parent) as folder:
            copy_database(kept, folder / _DATABASE)
            manifest = {"version": __version__, "database": kept.engine, "revisions": revisions_of(kept),
                        "created_at": datetime.now(UTC).isoformat()}  # fmt: skip
            (folder / _MANIFEST).write_text(json.dumps(manifest))
            _pack(folder / _MADE, folder, settings.data_dir)
            (folder / _MADE).rename(file)
    except OSError as error:
        raise InvalidRequest(f"cannot write {file}: {error.strerror}") from error
    err.print(plain(f"{file}: {size_text(file.stat().st_size)}. It contains secrets and hashes of keys: keep it safe"))
    if settings.secrets_key is not None:
        err.print(
            "the backup does not contain the key that decrypts the secrets; keep the value of "
            "EVALUATOR_HOST_SECRETS_KEY too"
        )


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `backup` has written.")],
    *,
    data_dir: options.DataDirOption = None,
) -> None:
    """Restore a backup into an empty data directory and database, and migrate them to this version."""
    settings = load_settings(data_dir=data_dir)
    home = settings.data_dir
    require_own_folder(settings)
    kept = address(revealed(settings.database_url), home)
    taken = [name for name in (*_FOLDERS, _KEYS) if (home / name).exists() and not _is_empty(home / name)]
    if taken:
        raise Misconfigured(
            f"{home} already has {', '.join(taken)}. Choose an empty --data-dir, or move these files away"
        )
    home.mkdir(parents=True, exist_ok=True)
    try:
        remove_abandoned(_RESTORING, home)
        with instance_folder(_RESTORING, home) as folder, tarfile.open(file) as archive:
            _extract(archive, folder)
            manifest = _manifest(folder, file)
            if manifest["database"] != kept.engine:
                raise Misconfigured(
                    f"the backup contains a {manifest['database']} database, but this host uses {kept.engine}: "
                    "set EVALUATOR_HOST_DATABASE_URL to a database of the same kind, then restore again"
                )
            with _moved(folder, home):
                restore_database(kept, folder / _DATABASE, manifest["revisions"])
    except (OSError, tarfile.TarError) as error:
        raise InvalidRequest(f"{file} cannot be restored: {error}") from error
    migrate(kept)
    err.print(plain(f"restored the backup of {manifest['created_at']}; start the host"))


def _pack(file: Path, made: Path, data_dir: Path) -> None:
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    # without `dereference`, tarfile would store the second hard link to a file as a link, which `restore` refuses
    with os.fdopen(opened, "wb") as stream, tarfile.open(fileobj=stream, mode="w", dereference=True) as archive:
        for name in (_MANIFEST, _DATABASE):
            archive.add(made / name, name)
        for name in (*_FOLDERS, _KEYS):
            with suppress(FileNotFoundError):
                _add(archive, data_dir / name, name)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file, or a folder with its contents, to an archive.

    Skip links, the paths in `_LEFT_OUT`, and files that are deleted while this function runs.
    """
    archive.add(path, name, recursive=False)
    if path.is_dir():
        with closing(walk(path)) as entries:
            for entry in entries:
                inner = f"{name}/{entry.path}"
                if (entry.is_file or entry.is_folder) and not _LEFT_OUT.fullmatch(inner):
                    with suppress(FileNotFoundError):
                        archive.add(path / entry.path, inner, recursive=False)


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract the files and folders of an archive into a new folder. Only their owner can write them.

    This does without the filters of `tarfile`, which need Python 3.11.4: Debian 12 has 3.11.2.

    Raises:
      tarfile.ExtractError: the archive has another kind of entry, such as a link, or a path outside `folder`.
    """
    for member in archive:
        path = PurePosixPath(member.name)
        if not (member.isreg() or member.isdir()) or path.is_absolute() or ".." in path.parts or "\0" in member.name:
            raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder of a backup")
        target = folder / path
        if member.isdir():
            target.mkdir(0o700, exist_ok=True)
        elif (content := archive.extractfile(member)) is not None:
            with content, target.open("xb") as file:
                target.chmod(0o600)
                shutil.copyfileobj(content, file)
        target.chmod(member.mode & 0o755 | (0o700 if member.isdir() else 0o600))
        with suppress(OverflowError, ValueError):  # raised for a modification time that no file can have
            os.utime(target, (member.mtime, member.mtime))


def _manifest(folder: Path, file: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / _MANIFEST).read_text())
        revisions = {str(package): str(revision) for package, revision in found["revisions"].items()}
        return {"revisions": revisions, **{name: str(found[name]) for name in ("database", "created_at")}}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise InvalidRequest(
            f"{file} is not a backup of a host: it has no {_MANIFEST}; give a file that `evaluator-host backup` wrote"
        ) from error


@contextmanager
def _moved(folder: Path, home: Path) -> Iterator[None]:
    """Move the restored files and folders to the data directory; move them back if the block raises an error.

    The block restores the database. The files are moved before that, so that a killed command never leaves a database
    that refers to missing files.
    """
    moved = list[str]()
    try:
        for name in (*_FOLDERS, _KEYS):
            if (folder / name).exists():
                with suppress(FileNotFoundError, NotADirectoryError):
                    (home / name).rmdir()  # a host that starts creates these folders, and they may be empty
                (folder / name).rename(home / name)
                moved.append(name)
        yield
    except BaseException:
        for name in moved:
            (home / name).rename(folder / name)
        raise


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
