"""Builds and runs a host from its settings; this is the only package that chooses concrete classes."""
