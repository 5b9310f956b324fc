"""Evaluator Host inside other tools: coding agents (MCP), pytest, notebooks."""
