"""The base class of objects whose annotations declare their fields."""


class ValidationError(ValueError):
    """A field is missing or unknown, or Weave does not allow the class."""


ValidationError.__module__ = "pydantic_core._pydantic_core"


class Object:
    """An object whose class declares its fields by annotations, with defaults."""

    name: str | None = None
    description: str | None = None

    def __init__(self, **given):
        fields = {name for kind in type(self).__mro__ for name in getattr(kind, "__annotations__", ())}
        for name in fields:
            if name in given:
                setattr(self, name, given.pop(name))
            elif not hasattr(type(self), name):
                raise ValidationError(f"{type(self).__name__}: {name} is required")
        if given:
            raise ValidationError(f"{type(self).__name__} has no field {', '.join(given)}")
        after = getattr(self, "model_post_init", None)
        if callable(after):
            after(None)
