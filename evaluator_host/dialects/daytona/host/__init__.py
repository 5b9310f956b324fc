"""Sandboxes of Daytona that exist as records, and their scripts."""
