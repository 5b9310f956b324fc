"""UiPath's project layout: evaluators in their files, eval sets, recorded executions, agents, results."""
