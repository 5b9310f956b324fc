"""A sample of traces depends only on their ids, but not on the bits by which OpenTelemetry's samplers choose."""

import gzip
import json
import random

import pytest

from evaluator_host.platform.traces.export import read_request, traces_of
from evaluator_host.types.errors import InvalidRequest


def kept(trace_ids: list[str], share: float) -> list[str]:
    spans = [{"traceId": one, "spanId": f"{n:016x}", "name": "a"} for n, one in enumerate(trace_ids, 1)]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    return [one.trace_id for one in traces_of(read_request(body, "application/json", "", 1 << 26, share))]


@pytest.mark.parametrize("upstream", [1.0, 0.5, 0.1])
def test_an_exporter_that_samples_leaves_the_share_that_was_asked_for(upstream: float) -> None:
    chance = random.Random(1)
    every = [f"{chance.getrandbits(128):032x}" for _ in range(20_000)]
    # consistent sampling (OTEP 235) keeps a trace if its last 56 bits reach a threshold
    sent = [one for one in every if int(one[-14:], 16) >= (1 - upstream) * 2**56][:1500]
    for share in (0.1, 0.5, 0.9):
        assert len(kept(sent, share)) / len(sent) == pytest.approx(share, abs=0.05)


def test_a_compressed_export_that_is_cut_off_or_goes_on_is_refused() -> None:
    whole = gzip.compress(b'{"resourceSpans":[]}')
    assert list(traces_of(read_request(whole, "application/json", "gzip", 1 << 20, 1.0))) == []
    for body in (whole[:-1], whole[:-9], whole + whole):
        with pytest.raises(InvalidRequest, match="is cut off, or goes on after its end"):
            read_request(body, "application/json", "gzip", 1 << 20, 1.0)


def test_a_trace_has_the_same_place_on_each_host() -> None:
    trace_ids = [32 * digit for digit in "27d"]
    for share, number in ((0, 0), (0.05, 0), (0.06, 1), (0.36, 1), (0.37, 2), (0.98, 2), (0.99, 3), (1, 3)):
        assert kept(trace_ids, share) == trace_ids[:number]
        assert [one for alone in trace_ids for one in kept([alone.upper()], share)] == trace_ids[:number]
