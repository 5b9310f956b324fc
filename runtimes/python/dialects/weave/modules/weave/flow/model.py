"""The base class of models."""

from weave.flow.obj import Object


class Model(Object):
    """A model, which a scorer may have as a field."""
