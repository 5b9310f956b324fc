def evaluate(inputs, outputs, trace):
    budget = float(inputs.get("max_seconds", 2))
    seconds = total_seconds(trace)
    return {
        "score": 1.0 if seconds <= budget else budget / seconds,
        "passed": seconds <= budget,
        "seconds": seconds,
        "reason": f"{seconds:.3f} s of {budget:g} s",
    }


def total_seconds(trace):
    """Add up the root spans; their time includes that of the spans below them."""
    spans = (trace or {}).get("spans") or {}
    durations = [
        span.get("attributes", {}).get("ag", {}).get("metrics", {}).get("unit", {}).get("duration", {}).get("total")
        for span in spans.values()
    ]
    known = [seconds for seconds in durations if seconds is not None]
    if not known:
        raise ValueError("the row has no trace with durations")  # a row without a measurement must not get a good score
    return sum(known)
