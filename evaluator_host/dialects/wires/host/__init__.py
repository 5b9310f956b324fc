"""Common parts of all wires: their requests, calls, errors, and the commands that list and check them."""
