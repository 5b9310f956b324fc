"""Light modules in place of the package `ragas`, checked against 0.4.3: decorators of metrics, and results."""

__pin__ = "ragas==0.4.3"
__version__ = "0.4.3"
