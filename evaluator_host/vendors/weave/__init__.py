"""Weave's scorers (dialect `weave`)."""
