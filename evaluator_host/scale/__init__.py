"""Sandboxes in your own program, on one machine or many, without HTTP or a database."""
