"""Light modules that replace `inspect_ai` (as in release 0.3.285): the decorator of scorers, and scores."""

__pin__ = "inspect_ai==0.3.285"
__version__ = "0.3.285"
