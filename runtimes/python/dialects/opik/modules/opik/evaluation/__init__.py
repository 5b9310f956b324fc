"""Evaluation: these modules have only metrics."""
