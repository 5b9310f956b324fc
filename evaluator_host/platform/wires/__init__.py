"""Wires: routes on which other platforms let this host run evaluators' code. A wire has its platform's formats."""
