"""The route of code execution nodes."""
