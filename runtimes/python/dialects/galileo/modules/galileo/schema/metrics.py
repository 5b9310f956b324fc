"""Local metrics, which users define with their own functions."""


class LocalMetricConfig:
    """A metric that a user's function computes, and a function that aggregates the metric's scores."""

    def __init__(self, *, name, scorer_fn, aggregator_fn=None, **settings):
        self.name = name
        self.scorer_fn = scorer_fn
        self.aggregator_fn = aggregator_fn
        for key, value in settings.items():
            setattr(self, key, value)

    def __class_getitem__(cls, _item):
        return cls
