"""The subpackage for messages, spans, traces and sessions."""
