"""The web pages of a host."""
