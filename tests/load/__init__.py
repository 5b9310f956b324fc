"""Load tests: many callers use a real host, and a third of their calls are hostile."""
