"""Opik's custom metrics (dialect `opik`)."""
