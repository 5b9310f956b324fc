"""Provides the names that custom UiPath evaluators import, as light modules with the paths of package `uipath`."""
