"""The routes of `/v1` and their bodies."""
