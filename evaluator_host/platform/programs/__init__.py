"""Runs a program once, for `POST /v1/run` and for other platforms' APIs (wires)."""
