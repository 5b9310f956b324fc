"""Owns spans as JSON."""
