"""The base class of metrics over whole conversations."""

from opik.evaluation.metrics import base_metric


class ConversationThreadMetric(base_metric.BaseMetric):
    """A metric that gets a list of messages."""

    def score(self, conversation, **kwargs):
        """Return a ScoreResult, or a list of them."""
        raise NotImplementedError
