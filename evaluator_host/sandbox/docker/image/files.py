"""Copies files out of an image: by way of a container that is never started, so that nothing of the image runs."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker
import docker.errors

from evaluator_host.sandbox.docker.cleanup import LABEL_BOOT, LABEL_INSTANCE, boot_id
from evaluator_host.sandbox.linux.instance import this_instance


@dataclass(frozen=True, slots=True)
class Source:
    """An image to copy out of."""

    client: docker.APIClient
    container: str

    @contextmanager
    def archive(self, path: str) -> Iterator[Iterator[bytes]]:
        """Yield a tar of the file or folder at `path`, in pieces. Raises one of `ENGINE_ERRORS`."""
        pieces, _ = self.client.get_archive(self.container, path)
        with contextlib.closing(pieces):
            yield iter(pieces)


@contextmanager
def source(client: docker.APIClient, image: str) -> Iterator[Source]:
    """Yield an image to copy out of. Its container is swept should this host die meanwhile. Blocks."""
    labels = {LABEL_INSTANCE: this_instance(), LABEL_BOOT: boot_id()}
    made = client.create_container(image, command=["/nothing"], entrypoint=[], labels=labels, network_disabled=True)
    try:
        yield Source(client, str(made["Id"]))
    finally:
        with contextlib.suppress(docker.errors.APIError):
            client.remove_container(made["Id"], force=True, v=True)
