"""Traces: OTLP, and the documented tree of spans."""
