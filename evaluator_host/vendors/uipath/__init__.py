"""Support for UiPath: evaluators, the project layout, eval sets, recorded executions and agents."""
