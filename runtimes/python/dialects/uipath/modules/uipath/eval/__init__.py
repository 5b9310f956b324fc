"""Owns what custom evaluators of UiPath import: light modules with the names and paths of the package `uipath`."""
