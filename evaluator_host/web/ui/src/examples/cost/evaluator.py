def evaluate(inputs, outputs, trace):
    budget = float(inputs.get("max_cost", 0.01))
    spans = ((trace or {}).get("spans") or {}).values()
    counts = [count for count in map(total_cost, spans) if count is not None]
    if not counts:
        raise ValueError("the row has no trace with costs")  # a row without a measurement must not get a good score
    cost = sum(counts)
    return {
        "score": 1.0 if cost <= budget else budget / cost,
        "passed": cost <= budget,
        "cost": cost,
        "reason": f"${cost:.4f} of ${budget:.4f}",
    }


def total_cost(span):
    """Return the costs of a span, None if they are unknown.

    A span's own total includes the spans below it. If it has no total, the spans below it are added up.
    """
    own = span.get("attributes", {}).get("ag", {}).get("metrics", {}).get("unit", {}).get("costs", {})
    if own.get("total") is not None:
        return own["total"]
    below = [count for count in map(total_cost, span.get("children") or []) if count is not None]
    return sum(below) if below else None
