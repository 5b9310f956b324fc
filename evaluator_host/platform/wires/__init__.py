"""Wires: routes on which other platforms call this host to run evaluators' code, in the platforms' own formats."""
