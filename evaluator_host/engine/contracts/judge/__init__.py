"""Contract `judge`: the user fills in a form instead of writing code, and a model judges the rows."""
