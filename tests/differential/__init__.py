"""Runs the same cases in the real packages and here, and compares what they return field by field."""
