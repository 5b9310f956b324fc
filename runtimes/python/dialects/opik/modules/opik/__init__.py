"""Light modules that replace `opik` (as in release 2.2.122): base classes of metrics, and their results."""

__pin__ = "opik==2.2.122"
__version__ = "2.2.122"
