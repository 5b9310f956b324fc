"""Evaluators of HoneyHive's experiments (dialect `honeyhive`)."""
