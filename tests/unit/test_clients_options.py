"""Both clients accept every field of `POST /v1/jobs`."""

import inspect
import re
from pathlib import Path

from evaluator_host.client import Client
from tests.described import described_app

TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript" / "src" / "jobs.ts"
FIRST = {"evaluators", "dataset"}


def fields_of(name: str) -> set[str]:
    return set(described_app().openapi()["components"]["schemas"][name]["properties"])


def test_the_python_client_takes_every_field_of_a_job() -> None:
    options = inspect.signature(Client("http://127.0.0.1:1").jobs.create).parameters
    assert set(options) - {"self"} == (fields_of("JobIn") - {"config"}) | fields_of("JobConfigIn") | {"idempotency_key"}


def test_the_npm_client_takes_every_field_of_a_job() -> None:
    options = re.search(r"interface JobOptions extends (.*?) \{\n(.*?)\n\}", TYPESCRIPT.read_text(), re.DOTALL)
    assert options is not None
    assert options[1] == 'Partial<Omit<JobIn, "evaluators" | "dataset" | "config">>'
    named = set(re.findall(r"^  (\w+)\?:", options[2], re.MULTILINE))
    assert named == (fields_of("JobIn") - FIRST) | {"idempotencyKey"}
