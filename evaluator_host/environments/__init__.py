"""Environments: package sets installed for one runtime, and the toolchain they are built and run with."""
