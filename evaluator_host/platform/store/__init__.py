"""The database of a host, and the tables that all resources share. The classes here return frozen dataclasses."""
