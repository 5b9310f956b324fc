from galileo import LlmSpan


def scorer_fn(*, step_object: LlmSpan, **kwargs) -> float:
    return float(step_object.output.content == step_object.dataset_output)


def aggregator_fn(*, scores: list) -> dict:
    return {"Mean": sum(scores) / len(scores)}
