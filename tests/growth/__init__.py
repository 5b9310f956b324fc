"""Measures what reading from a database costs with some rows, and with four times as many rows: the cost must not grow
faster than the work.
"""
