"""The base class of models."""

from weave.flow.obj import Object


class Model(Object):
    """The base class of models. A scorer may have a model as a field."""
