"""Runs the same cases with the real packages and on this host, and compares the returned values field by field."""
