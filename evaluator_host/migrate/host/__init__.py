"""The commands and routes for migrations. This package may import all others, and is loaded by name."""
