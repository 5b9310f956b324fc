"""Scoring of traces in a self-hosted MLflow, by its REST API."""
