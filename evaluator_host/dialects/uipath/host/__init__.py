"""Runs the eval sets of a UiPath project: agents, evaluators, reports."""
