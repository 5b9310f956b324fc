"""The subpackage for the schemas of metrics and traces."""
