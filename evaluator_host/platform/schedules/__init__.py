"""Schedules, which make jobs at fixed times."""
