"""Data files of evaluators: what code reads and packages download, stored by digest."""
