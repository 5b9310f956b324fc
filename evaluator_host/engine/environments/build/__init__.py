"""Builds package sets: resolves pins, installs and tests packages, and runs each command in a build sandbox."""
