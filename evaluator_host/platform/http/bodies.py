"""Base class of request bodies. An error names each unknown field; integers and times are bounded."""

from collections.abc import Callable
from dataclasses import MISSING, fields
from dataclasses import Field as DataField
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from evaluator_host.types.doc import Doc
from evaluator_host.types.json_values import is_small

_SMALL_VALUES: Final = 10_000  # maximum number of values in a small body, which takes less than 20 ms to encode or copy
_SMALL_CHARACTERS: Final = 16 << 20
# an object with more fields gets one error instead of one for each unknown field; no valid object has nearly as many
_MANY: Final = 100
_MANY_KEYS: Final = 2000  # maximum number of keys in an object whose keys a caller chooses
MOST: Final = 2**53  # the largest integer that every JSON parser keeps exactly; the operator's limits are far lower


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the time in UTC is before the year 1 or after the year 9999") from error


def _not_below(number: int) -> int:
    """Return a number, but refuse one below -2**53. A `ge` in the type would override the `ge` of a field."""
    if number < -MOST:
        raise PydanticCustomError("too_small", "must be at least {least}", {"least": -MOST})
    return number


WholeNumber: TypeAlias = Annotated[int, Field(le=MOST), AfterValidator(_not_below)]
"""An integer that databases, files and every JSON parser can store exactly. Each integer of a request has this type."""

Moment: TypeAlias = Annotated[datetime, AfterValidator(_in_utc)]
"""A time in UTC. A time without an offset is taken as UTC."""


def require_small(value: Any) -> Any:
    """Return a value unchanged if it is small. Pydantic calls this function for all parts of a body except rows.

    Raises:
      PydanticCustomError: the value contains over 10,000 values or 16 MB of text.
    """
    if not is_small(value, values=_SMALL_VALUES, characters=_SMALL_CHARACTERS):
        limits = {"values": _SMALL_VALUES, "mb": _SMALL_CHARACTERS >> 20}
        raise PydanticCustomError(
            "too_many_values", "the value contains over {values} values or {mb} MB of text", limits
        )
    return value


def _few_keys(value: Any, most: int) -> Any:
    """Refuse an object with over `most` keys. The error has one message instead of a message for each key."""
    if isinstance(value, dict) and len(value) > most:
        raise PydanticCustomError(
            "too_many_fields", "the object has {count} fields, more than any request may have", {"count": len(value)}
        )
    return value


Few: Final = BeforeValidator(lambda value: _few_keys(value, _MANY_KEYS))
"""Refuses an object with too many keys with a single message. For objects whose keys a caller chooses; for lists, see
`FailFast`."""


class SmallBody(BaseModel):
    """A body with fields of any names, and at most 10,000 values in total."""

    _small = model_validator(mode="before")(require_small)


def example(**fields: Any) -> ConfigDict:
    """Return a pydantic configuration that shows these fields as the body's example in the API documentation."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class Body(BaseModel):
    """Base of the JSON objects in requests: immutable; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, data: Any) -> Any:
        return _few_keys(data, _MANY)


_Body = TypeVar("_Body", bound=Body)


def fields_of(kind: type[Any]) -> Callable[[type[_Body]], type[_Body]]:
    """Return a decorator that adds the fields of a dataclass, with limits and descriptions, to a request body.

    Fields that the body declares itself are left out.
    """

    def decorate(body: type[_Body]) -> type[_Body]:
        hints = get_type_hints(kind, include_extras=True)
        own: dict[str, Any] = {
            one.name: (hints[one.name], _field(one, hints[one.name]))
            for one in fields(kind)
            if one.name not in body.model_fields
        }
        return create_model(body.__name__, __base__=body, __doc__=body.__doc__, __module__=body.__module__, **own)

    return decorate


def _field(one: DataField[Any], hint: Any) -> Any:
    doc = next(extra for extra in get_args(hint)[1:] if isinstance(extra, Doc))
    types = {get_args(hint)[0], *get_args(get_args(hint)[0])}
    limits = doc.limits
    if int in types:
        limits.setdefault("le", MOST)
    if float in types:
        limits["allow_inf_nan"] = False
    if one.default_factory is not MISSING:
        return Field(default_factory=one.default_factory, description=doc.text, **limits)
    return Field(... if one.default is MISSING else one.default, description=doc.text, **limits)
