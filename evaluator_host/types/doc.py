"""Documents a field where it is declared: `count: Annotated[int, Doc("Values in the bin.")]`."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Doc:
    """The description of a field: its meaning, shape and unit.

    The OpenAPI document shows this description. `fields_of` checks requests against the limits, which have the same
    names as the arguments of pydantic's `Field`.
    """

    text: str
    _: KW_ONLY
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """Return the limits of the field."""
        found = {name: getattr(self, name) for name in ("ge", "gt", "le", "min_length", "max_length", "pattern")}
        return {name: limit for name, limit in found.items() if limit is not None}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the JSON schema of the field with its description; pydantic calls this."""
        return {**handler(schema), "description": self.text}
