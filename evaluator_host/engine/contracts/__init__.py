"""Dialects: the ways in which evaluators are written. Each dialect has a folder here; `table.py` lists the dialects."""
