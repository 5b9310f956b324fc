"""Runs the code of Laminar's online evaluators."""
