"""Names of entities, and references from one to another."""

import re
from typing import Final

from evaluator_host.model.errors import InvalidRequest

NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.\-]{1,255}")


def split_ref(reference: str, *, namespace: str, what: str) -> tuple[str, str]:
    """Return the namespace and the name of `workspace/name`, or of `name` alone.

    Raises:
      InvalidRequest: it is no such reference.
    """
    before, slash, after = reference.rpartition("/")
    if not slash:
        before = namespace
    if NAME.fullmatch(before) is None or NAME.fullmatch(after) is None:
        raise InvalidRequest(f"{reference[:120]!r} refers to no {what}: write workspace/name")
    return before, after
