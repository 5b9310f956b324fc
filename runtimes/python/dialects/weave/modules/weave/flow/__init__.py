"""The parts of weave: ops, objects, scorers."""
