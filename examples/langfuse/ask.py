"""Sends one evaluator to a host as Langfuse does: signed, and with Langfuse's protocol for external executors."""

import hashlib
import hmac
import json
import os
import time
import urllib.request

CODE = """
def evaluate(ctx: EvaluationContext) -> EvaluationResult:
    same = ctx.observation.output == ctx.experiment.item_expected_output
    return EvaluationResult(scores=[Score(name="exact", value=1 if same else 0, data_type="NUMERIC")])
"""
HOST = os.environ.get("EVALUATOR_HOST_URL", "http://127.0.0.1:8710")


def main() -> None:
    """Send the evaluator, and print the status and the body of the response."""
    asked = {
        "runtime": {"language": "PYTHON"},
        "code": {"source": CODE},
        "payload": {
            "observation": {"input": "Capital of France?", "output": "Paris", "metadata": {}},
            "experiment": {"itemExpectedOutput": "Paris", "itemMetadata": {}},
        },
    }
    body, now = json.dumps(asked), int(time.time())
    digest = hmac.new(os.environ["SECRET"].encode(), f"{now}.{body}".encode(), hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "x-langfuse-signature": f"t={now},v1={digest}"}
    request = urllib.request.Request(f"{HOST}/wires/langfuse", body.encode(), headers)
    with urllib.request.urlopen(request) as answer:
        print(answer.status, answer.read().decode())


if __name__ == "__main__":
    main()
