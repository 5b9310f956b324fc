"""The commands and routes for migrations. They may import all other packages, and are loaded by name."""
