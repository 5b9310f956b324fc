"""Rewards for TRL: 1 if an answer passes the tests of its task; 0 if it fails them, raises an error or does not end."""

from pathlib import Path

try:
    from evaluator_host_client import Client, Evaluator, Limits, Row
except ImportError:  # the whole host is installed, not only its client
    from evaluator_host import Client, Evaluator, Limits, Row

CODE = (Path(__file__).parent / "reward.py").read_text()
EVALUATOR = Evaluator(CODE, limits=Limits(timeout_s=2))
ANSWERS_FAULTS = {"timeout", "memory_limit", "process_limit", "disk_limit", "crashed", "policy_violation"}


def passes(completions: list, tests: list[list[str]], **_: object) -> list[float]:
    """Return a reward for each completion, for `reward_funcs` of `GRPOTrainer`; `tests` is a column of the data set."""
    pairs = zip(completions, tests, strict=True)
    rows = [Row(inputs={"tests": checked(one)}, outputs=text_of(completion)) for completion, one in pairs]
    with Client() as client:
        results = client.evaluate_batch(EVALUATOR, rows).results
    for at, one in enumerate(results):
        if one.error is not None and one.error.code not in ANSWERS_FAULTS:  # the model is not at fault
            raise RuntimeError(f"completion {at}: {one.error.code}: {one.error.message}")
    return [one.score or 0.0 for one in results]


def text_of(completion: str | list[dict]) -> str:
    """Return the text that the model wrote; the completion is a string or a conversation."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def checked(tests: list[str]) -> list[str]:
    """Return a row's tests; raise an error if the row has none."""
    if not isinstance(tests, list) or not tests or not all(isinstance(one, str) for one in tests):
        raise ValueError(f"`tests` of a row is {tests!r}, not a list of texts")
    return tests


if __name__ == "__main__":
    answers = ["def double(n): return 2 * n", "def double(n): return n", "while True: pass"]
    print(passes(answers, [["assert double(4) == 8"]] * 3))
