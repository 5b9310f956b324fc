"""The base class of Weave's models."""

from weave.flow.obj import Object


class Model(Object):
    """A model, which may be a field of a scorer."""
