"""The result of a scorer."""


class Score:
    """A named score between 0 and 1; None means that the score does not apply."""

    def __init__(self, name, score=None, metadata=None, error=None):
        if score is not None and (score < 0 or score > 1):
            raise ValueError(f"score ({score}) must be between 0 and 1")
        self.name = name
        self.score = score
        self.metadata = {} if metadata is None else metadata
        self.error = error

    def as_dict(self):
        return {"score": self.score, "metadata": self.metadata}

    def __repr__(self):
        return f"Score(name={self.name!r}, score={self.score!r}, metadata={self.metadata!r}, error={self.error!r})"

    def __eq__(self, other):
        return isinstance(other, Score) and vars(self) == vars(other)

    __hash__ = None
