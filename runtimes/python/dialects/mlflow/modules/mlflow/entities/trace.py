"""Traces of a conversation: there is one trace for each turn."""

import json


class _Record:
    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __repr__(self):
        return f"{type(self).__name__}({self.__dict__!r})"


class TraceInfo(_Record):
    """Metadata of a trace."""


class TraceData(_Record):
    """The request and the response as JSON text, and spans."""


class Trace(_Record):
    """One turn of a conversation."""

    @classmethod
    def of_turn(cls, messages, number):
        """Make a trace from a turn's messages."""
        asked = [one for one in messages if one.get("role") != "assistant"]
        said = [one for one in messages if one.get("role") == "assistant"]
        users = [one for one in asked if one.get("role") == "user"]
        request, answer = {"messages": asked}, said[-1].get("content") if said else None
        info = TraceInfo(
            trace_id=f"tr-{number}",
            request_preview=_text(users[-1].get("content") if users else None),
            response_preview=_text(answer),
            trace_metadata={"mlflow.trace.session": "session"},
            tags={},
            state="OK",
        )
        data = TraceData(request=json.dumps(request), response=json.dumps(answer), spans=[])
        return cls(info=info, data=data, messages=messages)

    def search_spans(self, **_conditions):
        """Return an empty list, because a turn has no spans."""
        return []


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)
