"""Galileo's code metrics (dialect `galileo`)."""
