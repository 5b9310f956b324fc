"""A reward for verl: set `custom_reward_function.path=verl_reward.py`. A row's ground truth contains its tests."""

import json

from trl_reward import passes


def compute_score(
    data_source: str, solution_str: str, ground_truth: list[str] | str, extra_info: dict | None = None
) -> float:
    """Return the reward for one answer; a ground truth that is a string is parsed as JSON."""
    tests = json.loads(ground_truth) if isinstance(ground_truth, str) else list(ground_truth)
    return passes([solution_str], [tests])[0]


if __name__ == "__main__":
    assert compute_score("double", "def double(n): return 2 * n", ["assert double(4) == 8"]) == 1.0
