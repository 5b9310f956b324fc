"""A host under random faults, and an oracle that compares all that it answers and stores with a run without faults."""
