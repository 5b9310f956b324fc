"""A host under random faults, and an oracle that compares all its answers and stored data with a run without faults."""
