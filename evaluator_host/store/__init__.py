"""The database of a host: the only package with SQL. It returns frozen dataclasses."""
