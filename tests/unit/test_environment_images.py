"""Which images of environments and data files a host removes from an engine."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import docker

from evaluator_host.engine.sandbox.docker.environment_images import _last_step


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
