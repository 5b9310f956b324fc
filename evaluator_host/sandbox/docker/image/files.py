"""Copies files out of an image without running anything of it: from a container that is created and never started."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker
import docker.errors

from evaluator_host.sandbox.docker.cleanup import LABEL_BOOT, LABEL_INSTANCE, boot_id
from evaluator_host.sandbox.linux.instance import this_instance


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """The files of an image."""

    client: docker.APIClient
    container: str

    @contextmanager
    def archive(self, path: str) -> Iterator[Iterator[bytes]]:
        """Yield a tar of the file or folder at `path`, in pieces. Raises `ENGINE_ERRORS`."""
        pieces, _ = self.client.get_archive(self.container, path)
        with contextlib.closing(pieces):
            yield iter(pieces)


@contextmanager
def open_image(client: docker.APIClient, image: str) -> Iterator[ImageFiles]:
    """Yield the files of an image. Blocks. Should this host die meanwhile, a later sweep removes the container."""
    labels = {LABEL_INSTANCE: this_instance(), LABEL_BOOT: boot_id()}
    made = client.create_container(image, command=["/nothing"], entrypoint=[], labels=labels, network_disabled=True)
    try:
        yield ImageFiles(client, str(made["Id"]))
    finally:
        with contextlib.suppress(docker.errors.APIError):
            client.remove_container(made["Id"], force=True, v=True)
