"""Types that code uses in annotations."""

Message = dict
Messages = list
Info = dict
RewardFunc = object


class State(dict):
    """The state of a rollout, a dict."""
