"""Base classes for metrics that score one answer, and for metrics that score a conversation."""


class BaseMetric:
    """A metric; subclasses define `measure` and `a_measure`, which set `score`, `reason` and `success`."""

    threshold = None
    score = None
    reason = None
    success = None
    error = None
    strict_mode = False
    async_mode = True
    verbose_mode = False
    include_reason = False
    skipped = False
    evaluation_model = None
    evaluation_cost = None

    def measure(self, test_case, *args, **kwargs):
        """Set the metric's score; each subclass defines how."""
        raise NotImplementedError

    async def a_measure(self, test_case, *args, **kwargs):
        """Set the metric's score; each subclass defines how."""
        raise NotImplementedError(
            f"Async execution for {type(self).__name__} not supported yet. Set 'async_mode' to 'False'."
        )

    def is_successful(self):
        """Return whether the score is at least the threshold, or None if there is no threshold."""
        if self.error is not None:
            self.success = False
        elif self.threshold is None:
            return None
        else:
            try:
                self.success = self.score >= self.threshold
            except TypeError:
                self.success = False
        return self.success

    @property
    def __name__(self):
        return "Base Metric"


class BaseConversationalMetric(BaseMetric):
    """A metric that scores a conversation."""
