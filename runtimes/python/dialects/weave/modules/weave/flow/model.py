"""The class from which models of weave derive."""

from weave.flow.obj import Object


class Model(Object):
    """A model, which may be a field of a scorer."""
