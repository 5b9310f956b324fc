"""Evaluators of Patronus' package (dialect `patronus`)."""
