"""Light modules that replace `deepeval` (as in release 4.3.1): base classes of metrics, and test cases."""

__pin__ = "deepeval==4.3.1"
__version__ = "4.3.1"
