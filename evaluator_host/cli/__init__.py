"""The command line: reads options, calls a service or a running host, prints tables or JSON, and sets the exit code."""
