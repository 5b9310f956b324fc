"""Light modules that replace `ragas` (as in release 0.4.3): decorators of metrics, and results."""

__pin__ = "ragas==0.4.3"
__version__ = "0.4.3"
