"""Data sets: the formats of files with rows, their storage, and the mapping of columns to row fields."""
