"""A document that a retriever found."""

from galileo_core.schemas.fields import Fields


class Document(Fields):
    """A document: its text and its metadata."""

    _defaults = {"content": "", "metadata": {}}  # noqa: RUF012 - read only
