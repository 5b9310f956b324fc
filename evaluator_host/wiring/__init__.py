"""The one package that names concrete classes: settings in, a running service out."""
