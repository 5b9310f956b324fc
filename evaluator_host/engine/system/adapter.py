"""Reads and writes values of one type as JSON."""

from functools import cached_property
from typing import Any, Final, Generic, TypeVar, overload

from pydantic import TypeAdapter

T = TypeVar("T")


class Adapter(Generic[T]):
    """A `TypeAdapter` that is created on first use.

    Creating all adapters at once would take a fortieth of the host's start time.
    """

    @overload
    def __init__(self, kind: type[T]) -> None: ...

    @overload  # needed because a union is not a `type`
    def __init__(self, kind: Any) -> None: ...

    def __init__(self, kind: Any) -> None:
        self._kind: Final = kind

    @cached_property
    def _made(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    def read(self, value: Any) -> T:
        return self._made.validate_python(value)

    def read_json(self, text: str | bytes) -> T:
        return self._made.validate_json(text)

    def json(self, value: T) -> str:
        return self._made.dump_json(value).decode()
