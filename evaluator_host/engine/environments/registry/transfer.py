"""Pushes installed package sets to a registry; pulls and installs sets that other hosts have pushed."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.environments.build.build import BuildContext, adopt
from evaluator_host.engine.environments.folder import not_installed
from evaluator_host.engine.environments.record import EnvironmentReport, Record, require_fit, set_key
from evaluator_host.engine.packages.lock import Lock, LockTarget, Progress
from evaluator_host.engine.system.extras import extra
from evaluator_host.engine.system.files import hold_lock
from evaluator_host.engine.system.tree import remove
from evaluator_host.types.errors import IndexUnavailable, InUse, PackagesFailed, SandboxUnavailable

if TYPE_CHECKING:
    from evaluator_host.engine.environments.registry.set_image import Pulled


MAX_BYTES: Final = 8 << 30  # maximum size of all files in a set together, in bytes

_DOCKER_PY: Final = ("docker", "pushing and pulling package sets", SandboxUnavailable)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegistryTransfer:
    """Pushes and pulls the package sets of one host."""

    context: BuildContext  # folders and settings for installing sets
    _: KW_ONLY
    find: Callable[[str], Record | None]  # returns the record of an installed set by its key or digest
    use: Callable[[Record], bool]  # marks a set as used here; returns False when another process is removing it
    target_of: Callable[[Lock], Awaitable[LockTarget]]  # returns the runtime that this host has for a lock
    on_pulled: Callable[[], Awaitable[object]]  # called when a set has been installed

    async def push(self, name: str, reference: str, *, progress: Progress | None = None) -> str:
        """Push the package set with key or digest `name`; return the exact name of its image.

        `reference` is the image name to push to, such as `registry/team/set:1`.

        Raises:
          NotFound: there is no such set.
          InUse: another process of this host is removing the set.
          PackagesFailed: files of the set were changed, its lock is lost, or the registry refused.
          InvalidRequest: the reference cannot be used.
          IndexUnavailable: the registry does not answer.
          SandboxUnavailable: docker-py is not installed.
        """
        with extra(*_DOCKER_PY):
            from evaluator_host.engine.environments.registry.http import push  # noqa: PLC0415 - docker-py, which nothing else here needs

        record = await asyncio.to_thread(self.find, name)
        if record is None:
            raise not_installed(name)
        if not self.use(record):
            raise InUse("another process of this host is removing the package set; build the set again, then push it")
        folder = self.context.folder
        lock = folder.lock_of(record.key)
        if lock is None or lock.digest != record.digest:
            raise PackagesFailed("the lock file of the package set is lost; remove the set, then build it again")
        if broken := await asyncio.to_thread(folder.broken, record.digest):
            raise PackagesFailed(
                f"{broken[0]} in the package set has changed since it was installed; "
                "run `evaluator-host packages verify`"
            )
        environment = folder.environment(record)
        record = replace(record, key=set_key(lock.pins, lock.language, lock.target), lock=lock.to_json())
        return await push(environment, reference, record=record, progress=progress)

    async def pull(
        self,
        reference: str,
        *,
        digest: str | None = None,
        progress: Progress | None = None,
    ) -> EnvironmentReport:
        """Pull a package set, test it in a sandbox, install it unless it is installed, and return a report on it.

        `digest` is the digest of the expected set.

        Raises:
          PackagesFailed: there is no such image; the set is not the expected one, is not complete, or does not work
            here; or this host has the same pins with another lock.
          InvalidRequest: the reference cannot be used.
          IndexUnavailable: the registry does not answer.
          SandboxUnavailable: docker-py is not installed, or no sandbox can be started.
        """
        with extra(*_DOCKER_PY):
            from evaluator_host.engine.environments.registry.http import pull  # noqa: PLC0415 - docker-py, which nothing else here needs

        folder = self.context.folder
        pulling = "sha256:" + hashlib.sha256(f"pull {reference}".encode("utf-8", "replace")).hexdigest()
        async with hold_lock(folder.build_lock(pulling)):  # `sweep` does not remove a stage that is locked
            stage = await asyncio.to_thread(folder.new_stage, pulling)
            try:
                most = min(MAX_BYTES, self.context.ceiling_mb << 20)
                pulled = await pull(reference, stage / "files", digest=digest, max_bytes=most, progress=progress)
                record = await self._receive(pulled, stage)
            finally:
                await asyncio.shield(asyncio.to_thread(remove, stage))
        self.use(record)
        await self.on_pulled()
        return record.report()

    async def pull_locked(self, lock: Lock, repository: str) -> bool:
        """Pull the package set that a lock describes from a repository of sets, and install it.

        Return whether the repository has the set.
        """
        with extra(*_DOCKER_PY):
            from evaluator_host.engine.environments.registry.http import tag_of  # noqa: PLC0415 - docker-py, which nothing else here needs
        try:
            await self.pull(f"{repository}:{tag_of(lock.digest)}", digest=lock.digest)
        except (PackagesFailed, IndexUnavailable, SandboxUnavailable) as error:
            _log.info("the set %s is installed from the index: %s", lock.digest, error.detail)
            return False
        return True

    async def _receive(self, pulled: "Pulled", stage: Path) -> Record:
        lock = Lock.from_json(pulled.record.lock)
        own = await self.target_of(lock)
        require_fit(lock, own)
        key = set_key(lock.pins, lock.language, own)
        async with hold_lock(self.context.folder.build_lock(key)):
            return await _install(self.context, stage, key=key, lock=lock, pulled=pulled)


async def _install(context: BuildContext, stage: Path, *, key: str, lock: Lock, pulled: "Pulled") -> Record:
    known = context.folder.lock_of(key)
    if known is not None and known.digest != lock.digest:
        raise PackagesFailed(
            "this host already has a set with these pins and another lock, and evaluators use it; remove that set with "
            f"`evaluator-host packages delete {key}`, then pull again"
        )
    if (record := context.folder.record(lock.digest)) is not None:
        await asyncio.to_thread(context.folder.keep_lock, key, lock)
        return record
    # the backend may still have an image of an earlier, broken copy of the set
    await context.backend.drop_environment(lock.digest)
    return await adopt(context, stage, key=key, lock=lock, pulled=pulled.record)
