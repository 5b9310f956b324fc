"""The base class of all schemas: objects get fields by keyword, have default values, and are compared by value."""


class Fields:
    """An object that gets its fields by keyword; it also keeps fields that its class does not declare."""

    _defaults = {}  # noqa: RUF012 - read only

    def __init__(self, **fields):
        for name, value in self._defaults.items():
            setattr(self, name, type(value)(value) if isinstance(value, list | dict) else value)
        for name, value in fields.items():
            setattr(self, name, value)

    def model_dump(self, **_settings):
        return {name: _plain(value) for name, value in vars(self).items()}

    def __eq__(self, other):
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value)
        return f"{type(self).__name__}({shown})"


def _plain(value):
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.model_dump() if isinstance(value, Fields) else value
