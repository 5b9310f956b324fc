"""`POST /v1/run`, which runs a program once, and the same for wires."""
