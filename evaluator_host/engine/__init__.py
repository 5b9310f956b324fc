"""The engine: evaluates pasted code and returns one result. It uses no database, no HTTP and no vendor.

docs/engine.md shows how to use it as a library.
"""
