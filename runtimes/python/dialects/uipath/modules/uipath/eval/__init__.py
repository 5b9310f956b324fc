"""Light modules with the names that custom UiPath evaluators import, under the import paths of package `uipath`."""
