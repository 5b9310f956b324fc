"""Alerts on jobs, schedules and live traces."""
