"""The subpackage for the schemas of what Galileo logs."""
