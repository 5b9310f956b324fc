"""A host under random faults, and an oracle that compares whatever it answers and stores with a run without faults."""
