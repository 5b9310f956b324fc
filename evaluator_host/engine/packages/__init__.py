"""Exact pins of packages, the locks to which pins resolve, and the package that a missing import probably needs."""
