"""Pins (exact package versions), locks, and the packages that missing imports probably need."""
