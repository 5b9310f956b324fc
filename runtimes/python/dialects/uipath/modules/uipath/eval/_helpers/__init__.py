"""Functions with which evaluators read traces."""
