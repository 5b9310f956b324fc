"""The command and the routes of migrations. They are above all layers, and are loaded by name."""
