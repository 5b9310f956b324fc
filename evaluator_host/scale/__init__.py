"""Sandboxes in a program of one's own, on one machine or many: no HTTP, no database."""
