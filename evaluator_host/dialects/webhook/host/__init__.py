"""The routes of webhooks."""
