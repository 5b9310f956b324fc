"""Environments: package sets installed for one runtime each, and the tools that build and run package sets."""
