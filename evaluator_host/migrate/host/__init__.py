"""The command and the routes of migrations. They may import all other packages, and are loaded by name."""
