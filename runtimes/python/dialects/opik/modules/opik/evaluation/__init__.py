"""Evaluation: metrics only."""
