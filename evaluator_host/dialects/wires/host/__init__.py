"""What all wires share: their requests, calls, errors, and the commands that list and check them."""
