"""Schedules, which create jobs at fixed times."""
