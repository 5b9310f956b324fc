"""Creates a running host from settings; the only package that chooses concrete classes."""
