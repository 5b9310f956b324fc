"""Packages: exact pins, what they resolve to, and what an import probably needs."""
