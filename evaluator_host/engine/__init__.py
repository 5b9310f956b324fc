"""The engine, which evaluates pasted code without a database, HTTP or code of a vendor, and returns one result.

docs/engine.md shows how to use it as a library.
"""
