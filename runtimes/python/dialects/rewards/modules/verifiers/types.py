"""Names for annotations."""

Message = dict
Messages = list
Info = dict
RewardFunc = object


class State(dict):
    """What is known of a rollout."""
