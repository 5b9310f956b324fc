"""Runs Vellum's code execution nodes. Vellum's metrics are evaluators of contract `main`."""
