"""The package's part for evaluation. Only code-based evaluators are available here."""
