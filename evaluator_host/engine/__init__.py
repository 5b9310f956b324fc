"""The engine: pasted code to one result, without database, HTTP or vendors. docs/engine.md shows it as a library."""
