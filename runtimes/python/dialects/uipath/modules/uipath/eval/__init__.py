"""Provides the names that custom UiPath evaluators import, in light modules with the paths of package `uipath`."""
