"""Runs the same cases in the real packages and here, and compares the returned values field by field."""
