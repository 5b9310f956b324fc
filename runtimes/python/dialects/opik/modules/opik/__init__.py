"""Light modules that replace the package `opik` (compared with 2.2.122): base classes of metrics, and their results."""

__pin__ = "opik==2.2.122"
__version__ = "2.2.122"
