"""The class of sessions."""

from galileo_core.schemas.logging.step import BaseStep, StepType
from galileo_core.schemas.logging.trace import Trace


class Session(BaseStep):
    """Several requests of one user."""

    type = StepType.session
    previous_session_id = None

    def __init__(self, *, traces=(), **fields):
        super().__init__(**fields)
        self.traces = [Trace(**one) if isinstance(one, dict) else one for one in traces]


SessionWithTraces = Session
