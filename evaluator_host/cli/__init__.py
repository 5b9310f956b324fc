"""The command line: options in, service or client called, tables or JSON and an exit code out."""
