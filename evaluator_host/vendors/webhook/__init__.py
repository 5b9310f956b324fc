"""Webhooks that other platforms call to score a row with an evaluator of this host."""
