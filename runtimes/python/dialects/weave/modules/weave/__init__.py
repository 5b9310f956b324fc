"""Light modules that replace `weave` (as in release 0.54.0): ops and scorers. Nothing is traced."""

from weave.flow.model import Model
from weave.flow.obj import Object
from weave.flow.op import op
from weave.flow.scorer import Scorer, WeaveScorerResult

__pin__ = "weave==0.54.0"
__version__ = "0.54.0"
__all__ = ["Model", "Object", "Scorer", "WeaveScorerResult", "init", "op"]


def init(*_args, **_settings):
    """Do nothing, because nothing is traced here."""
