"""Sandboxes in your own program, on one machine or many. They need no HTTP and no database."""
