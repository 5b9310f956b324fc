"""Light modules that replace the package `ragas` (compared with 0.4.3): decorators of metrics, and results."""

__pin__ = "ragas==0.4.3"
__version__ = "0.4.3"
