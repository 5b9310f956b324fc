"""Metrics made with Ragas' decorators (dialect `ragas`)."""
