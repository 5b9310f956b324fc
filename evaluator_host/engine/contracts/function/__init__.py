"""Dialect `function`: functions with any name; the names of their parameters determine the arguments."""
