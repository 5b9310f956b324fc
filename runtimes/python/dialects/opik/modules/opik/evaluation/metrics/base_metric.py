"""The base class of metrics."""

import abc


class BaseMetric(abc.ABC):
    """A metric; subclasses define `score`. Nothing is tracked here."""

    def __init__(self, name=None, track=True, project_name=None):  # noqa: FBT002 - as in the package
        self.name = name if name is not None else self.__class__.__name__
        self.track = track
        self.project_name = project_name

    @abc.abstractmethod
    def score(self, *args, **kwargs):
        """Return a ScoreResult, or a list of them."""
        raise NotImplementedError

    async def ascore(self, *args, **kwargs):
        """Return what `score` returns."""
        return self.score(*args, **kwargs)
