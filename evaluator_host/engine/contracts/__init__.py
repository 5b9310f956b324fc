"""Dialects: the ways in which evaluators are written. `table.py` finds their folders, here or in plugins."""
