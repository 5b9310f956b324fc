"""Owns how metrics are run over rows."""
