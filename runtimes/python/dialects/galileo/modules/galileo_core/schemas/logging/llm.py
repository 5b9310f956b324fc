"""Messages of a chat."""

from galileo_core.schemas.fields import Fields


class MessageRole(str):
    """The author of a message: a string that also has the attribute `value`, like a member of an enumeration."""

    __slots__ = ()

    @property
    def value(self):
        """The string itself."""
        return str(self)


for _name in ("agent", "assistant", "developer", "function", "system", "tool", "user"):
    setattr(MessageRole, _name, MessageRole(_name))


class ToolCallFunction(Fields):
    """The name and the arguments of a called tool; the arguments are JSON text."""

    _defaults = {"name": "", "arguments": ""}  # noqa: RUF012 - read only


class ToolCall(Fields):
    """A call to a tool."""

    def __init__(self, *, id="", function=None, **more):  # noqa: A002 - the field's name
        function = ToolCallFunction(**function) if isinstance(function, dict) else function
        super().__init__(id=id, function=function or ToolCallFunction(), **more)


class Message(Fields):
    """A message of a chat."""

    def __init__(self, *, content="", role="user", tool_call_id=None, tool_calls=None, **more):
        calls = (
            None if tool_calls is None else [ToolCall(**one) if isinstance(one, dict) else one for one in tool_calls]
        )
        text = "" if content is None else content
        super().__init__(content=text, role=MessageRole(role), tool_call_id=tool_call_id, tool_calls=calls, **more)
