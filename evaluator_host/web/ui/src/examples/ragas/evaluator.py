from ragas.metrics import MetricResult, numeric_metric


@numeric_metric(name="exact", allowed_values=(0.0, 1.0))
def exact(response: str, reference: str) -> MetricResult:
    return MetricResult(value=float(response == reference), reason="compared as text")
