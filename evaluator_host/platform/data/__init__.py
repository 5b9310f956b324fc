"""Data files of evaluators, which code reads or packages would download, stored by digest."""
