"""Load tests: many callers call a real host, and a third of their calls are hostile."""
