"""A document that a retriever found."""

from galileo_core.schemas.fields import Fields


class Document(Fields):
    """Text and metadata."""

    _defaults = {"content": "", "metadata": {}}  # noqa: RUF012 - read only
