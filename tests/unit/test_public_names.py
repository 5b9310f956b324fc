"""`import evaluator_host` offers every public name, and imports no more than the name needs."""

import subprocess
import sys

import pytest

import evaluator_host


@pytest.mark.parametrize("name", evaluator_host.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(evaluator_host, name)


@pytest.mark.slow
def test_a_client_needs_no_engine_no_database_and_no_web_framework() -> None:
    program = "import sys; from evaluator_host import Client; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "httpx" in done.stdout.split()
    assert not {"docker", "requests", "sqlalchemy", "alembic", "fastapi", "jinja2"} & set(done.stdout.split())


@pytest.mark.long
@pytest.mark.slow
def test_a_run_needs_neither_engine_nor_database_nor_web_framework() -> None:
    program = "import sys; from evaluator_host.cli import run; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "evaluator_host" in done.stdout.split()
    assert not {"docker", "requests", "sqlalchemy", "alembic", "fastapi", "httpx"} & set(done.stdout.split())
