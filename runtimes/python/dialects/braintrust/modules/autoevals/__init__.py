"""A light module that replaces `autoevals` (as in release 0.4.1), with only the result class, `Score`.

To use the scorers of autoevals itself, pin the package.
"""

from braintrust.score import Score as Score

__pin__ = "autoevals==0.4.1"
__version__ = "0.4.1"
