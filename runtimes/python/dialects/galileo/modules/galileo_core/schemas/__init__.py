"""The subpackage with the schemas of Galileo's logs."""
