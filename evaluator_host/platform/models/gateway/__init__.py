"""Lets evaluators in sandboxes call the models that they were granted, without a network or a key (docs/models.md)."""
