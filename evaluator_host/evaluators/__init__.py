"""Evaluators kept under names, in versions that never change."""
