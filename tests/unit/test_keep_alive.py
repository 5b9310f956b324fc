"""Keep-alive closes idle connections to machines that do not answer, and no others."""

import socket
import time

import pytest

from evaluator_host.engine.system import keep_alive as tested
from evaluator_host.engine.system.keep_alive import keep_alive

SENT = bytes(16 << 20)  # more than the kernel buffers


def test_a_client_that_pauses_its_reading_for_longer_than_the_limit_gets_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tested, "_OPTIONS", dict.fromkeys(tested._OPTIONS, 1))  # these options add up to a limit of 2 s
    with socket.create_server(("127.0.0.1", 0)) as listener:
        keep_alive(listener)
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as server:
            server.setblocking(False)
            sent = server.send(SENT)
            assert sent < len(SENT)
            time.sleep(4)
            received = 0
            while received < len(SENT):
                received += len(client.recv(1 << 20))
                if sent < len(SENT):
                    try:
                        sent += server.send(memoryview(SENT)[sent:])
                    except BlockingIOError:
                        continue
