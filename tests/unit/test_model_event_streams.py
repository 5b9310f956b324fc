"""The host passes the server-sent events of a model's answer on to a row, and finds the last event of a stream."""

import pytest

from evaluator_host.platform.models.gateway.protocols import EventStream


@pytest.mark.parametrize(
    "last",
    [
        b"data: [DONE]",
        b"data:[DONE]",
        b'event: message_stop\ndata: {"type": "message_stop"}',
        b'event: response.completed\ndata: {"type": "response.completed"}',
    ],
)
def test_the_last_event_ends_a_stream_whenever_its_bytes_come(last: bytes) -> None:
    stream = EventStream(hides_usage=False)
    begun = b'event: message\ndata: {"text": "data: [DONE] and event: message_stop"}\n\n'
    assert stream.feed(begun) == begun
    assert not stream.ended
    stream.feed(last[:8])
    assert not stream.ended
    assert stream.feed(last[8:] + b"\n\n") == last + b"\n\n"
    assert stream.ended
