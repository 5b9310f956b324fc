"""Answers of the host as frozen types that hosts, clients and commands share. No I/O, no policy."""
