"""Rubrics: reward functions with weights."""
