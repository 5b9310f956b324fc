"""API keys, with which callers identify themselves."""
