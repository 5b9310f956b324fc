"""Light modules that replace the package `galileo_core`: steps and messages."""

__pin__ = "galileo==2.7.0"
