"""Many callers at a real host, a third of them hostile."""
