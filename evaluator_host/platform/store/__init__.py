"""The database of a host, and the tables that all resources share. Its classes return frozen dataclasses."""
