"""Files, file locks and child processes of the host; every other package may use this package."""
