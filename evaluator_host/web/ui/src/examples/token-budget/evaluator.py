def evaluate(inputs, outputs, trace):
    budget = float(inputs.get("max_tokens", 1000))
    spans = ((trace or {}).get("spans") or {}).values()
    counts = [count for count in map(total_tokens, spans) if count is not None]
    if not counts:
        # a row without a measurement must not get a good score
        raise ValueError("the row has no trace with token counts")
    tokens = sum(counts)
    return {
        "score": 1.0 if tokens <= budget else budget / tokens,
        "passed": tokens <= budget,
        "tokens": tokens,
        "reason": f"{tokens:g} tokens of {budget:g}",
    }


def total_tokens(span):
    """Return the token counts of a span, None if they are unknown.

    A span's own total includes the spans below it. If it has no total, the spans below it are added up.
    """
    own = span.get("attributes", {}).get("ag", {}).get("metrics", {}).get("unit", {}).get("tokens", {})
    if own.get("total") is not None:
        return own["total"]
    below = [count for count in map(total_tokens, span.get("children") or []) if count is not None]
    return sum(below) if below else None
