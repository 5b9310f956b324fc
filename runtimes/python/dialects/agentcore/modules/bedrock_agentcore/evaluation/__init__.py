"""The subpackage for evaluation. Only code-based evaluators are available here."""
