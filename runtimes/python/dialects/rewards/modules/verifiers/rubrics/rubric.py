"""A rubric: reward functions, their weights, and the parser that they share."""

from verifiers.parsers.parser import Parser


class Rubric:
    """Reward functions with weights, which are 1 by default."""

    def __init__(self, funcs=None, weights=None, parser=None):
        self.funcs = list(funcs or [])
        self.weights = list(weights or [1.0] * len(self.funcs))
        if len(self.weights) != len(self.funcs):
            raise ValueError(
                f"Number of weights ({len(self.weights)}) must match number of functions ({len(self.funcs)})"
            )
        self.parser = parser or Parser()
        self.class_objects = {"parser": self.parser}

    def add_reward_func(self, func, weight=1.0):
        self.funcs.append(func)
        self.weights.append(weight)

    def add_metric(self, func, weight=0.0):
        """Add a function, by default with weight 0."""
        self.add_reward_func(func, weight)

    def add_class_object(self, name, obj):
        """Add an object, which is passed to reward functions that have a parameter with this name."""
        self.class_objects[name] = obj
