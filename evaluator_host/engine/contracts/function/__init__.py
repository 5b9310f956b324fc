"""Dialect `function`: functions of any name; the names of their parameters choose what they get."""
