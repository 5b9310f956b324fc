"""The host's own files, file locks and child processes; every other package may use them."""
