"""Packages: exact pins, the locks that they resolve to, and the package that a missing import probably needs."""
