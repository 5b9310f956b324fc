"""Evaluators over data sets: durable, resumable, aggregated and comparable."""
