"""Compares the cost of reading from the database with some rows and with four times as many: the cost must not grow
faster than the work.
"""
