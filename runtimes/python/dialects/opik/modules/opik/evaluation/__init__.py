"""The package's part for evaluation. Only metrics are available here."""
