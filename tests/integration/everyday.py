"""An evaluator, rows, and commands for tests of everyday work."""

from evaluator_host.types.evaluator import Evaluator
from tests import forked

EXACT = Evaluator(
    "def evaluate(inputs, outputs, trace):\n    return float(outputs['x'] if outputs == '!' else outputs == inputs['gold'])\n",
    threshold=0.5,
)

ROWS = [
    {"question": "France?", "gold": "Paris", "answer": "Paris", "n": 1},
    {"question": "Italy?", "gold": "Rome", "answer": "Milan", "n": 2.5},
    {"question": "Peru?", "gold": "Lima", "answer": "!", "n": None},
]

MAPPING = {"outputs": "answer", "correct_answer": "gold"}


def command(url: str, *arguments: str, code: int = 0) -> str:
    done = forked.run([*arguments, "--url", url])
    assert done.returncode == code, done.stdout + done.stderr
    return str(done.stdout)
