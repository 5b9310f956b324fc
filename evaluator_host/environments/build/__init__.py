"""Builds package sets: resolves, installs and tries them, each command in a build sandbox."""
