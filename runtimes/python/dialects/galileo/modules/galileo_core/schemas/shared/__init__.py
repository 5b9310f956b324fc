"""The subpackage for schemas that several kinds of spans share."""
