"""Traces: OTLP, the documented tree of spans, flat lists of spans."""
