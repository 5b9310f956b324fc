"""The engine: evaluates pasted code and returns one result. It does not use a database, HTTP or code of a vendor.

docs/engine.md shows how to use it as a library.
"""
