"""Owns what evaluators read traces with."""
