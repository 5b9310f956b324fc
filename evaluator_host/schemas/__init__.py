"""Answers of the host as frozen types, shared by hosts, clients and commands. No I/O, no policy."""
