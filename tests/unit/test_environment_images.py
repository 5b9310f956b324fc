"""A host removes the right images of environments and data files from an engine."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest

from evaluator_host.engine.sandbox.docker.engine import Engine
from evaluator_host.engine.sandbox.docker.environment_images import (
    LABEL_DATA_BYTES,
    LABEL_WORKSPACE,
    EnvironmentImages,
    _last_step,
    _Layer,
    removal_order,
)
from evaluator_host.types.errors import OverQuota


class NoSuchImage(BaseHTTPRequestHandler):
    """Answers as Docker does when an image is gone."""

    def do_GET(self) -> None:
        body = json.dumps({"message": f"No such image: {self.path}"}).encode()
        self.send_response(404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_an_image_that_another_host_has_removed_has_no_last_step() -> None:
    with HTTPServer(("127.0.0.1", 0), NoSuchImage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"tcp://127.0.0.1:{server.server_port}"
            with contextlib.closing(docker.APIClient(base_url=address, version="1.41")) as client:
                assert _last_step(client, "sha256:" + "0" * 64) == ""
        finally:
            server.shutdown()
            thread.join()


def image(name: str, created: int, mb: int) -> dict[str, Any]:
    """Return an image of workspace `name[0]`, as an engine lists it."""
    return {"Id": name, "Created": created, "Labels": {LABEL_DATA_BYTES: str(mb << 20), LABEL_WORKSPACE: name[0]}}


@pytest.mark.parametrize(
    ("workspace", "new_mb", "order"),
    [
        # a workspace with too many images loses its own images first, although other workspaces have older ones
        ("a", 1, "a1 a2 a3 b1 c1"),
        # a workspace with few images gets its space from the workspace whose images take most
        ("c", 1, "a1 a2 c1 b1 a3"),
        ("b", 4, "b1 a1 a2 a3 c1"),  # the size of the new image counts too
        ("c", 3, "c1 a1 a2 b1 a3"),  # if two workspaces take equally much, the one that needs the space gives it
        ("d", 9, "a1 a2 b1 a3 c1"),  # a workspace without images cannot give any space
    ],
)
def test_room_is_made_by_the_workspace_whose_images_take_most(workspace: str, new_mb: int, order: str) -> None:
    found = [image("a2", 5, 1), image("a1", 4, 1), image("b1", 1, 2), image("c1", 2, 1), image("a3", 6, 2)]
    removed = removal_order(found, new_bytes=new_mb << 20, workspace=workspace)
    assert " ".join(one["Id"] for one in removed) == order


async def test_data_files_that_are_over_the_limit_alone_remove_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"12")
    (tmp_path / "b.bin").hardlink_to(tmp_path / "a.bin")
    images = EnvironmentImages(Engine(f"unix://{tmp_path}/no-engine"), image="x:1", data_bytes=3)
    with pytest.raises(OverQuota, match="use each file under fewer paths"):
        await images._build("x:2", _Layer("sha256:2", "data", tmp_path, "/opt/data", "x:1"))
    await images.close()
