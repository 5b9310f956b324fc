"""Coze Loop's code evaluators (dialect `coze`)."""
