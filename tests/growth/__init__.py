"""Compares the cost of reading from the database with some rows and with four times as many: it must not grow faster than the work."""
