"""The subpackage for evaluation. Only metrics are available here."""
