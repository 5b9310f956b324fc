"""Braintrust's scorers (dialect `braintrust`)."""
