"""The base class of models."""

from weave.flow.obj import Object


class Model(Object):
    """A model; scorers may hold one."""
