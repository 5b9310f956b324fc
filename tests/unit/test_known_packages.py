"""A host may choose only known packages for imports, and knows the modules in these packages."""

import json
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from evaluator_host.engine.packages import tools
from evaluator_host.engine.packages.suggest import is_known, known_modules, pin_for
from evaluator_host.types.evaluator import Language

PY, JS = Language.PYTHON, Language.JAVASCRIPT


def test_the_list_has_all_names_that_people_keep_and_thousands_more() -> None:
    kept = tools.known_names()
    assert {str(canonicalize_name(name)) for name in kept["python_packages"]} <= tools.known_packages(PY)
    assert set(kept["npm_packages"]) <= tools.known_packages(JS)
    assert {module: canonicalize_name(one) for module, one in kept["package_of_module"].items()}.items() <= (
        tools.package_of_module().items()
    )
    assert min(len(tools.known_packages(language)) for language in (PY, JS)) > 3000
    assert set(tools.package_of_module().values()) <= tools.known_packages(PY)
    assert json.loads(Path(tools.__file__).with_name("known_packages.json").read_text("utf-8"))["made"]


@pytest.mark.parametrize(
    ("module", "package"),
    [("cv2", "opencv-python"), ("sklearn.metrics", "scikit-learn"), ("yaml", "pyyaml"), ("rouge_score", "rouge-score"), ("dotenv", "python-dotenv"), ("bs4", "beautifulsoup4"), ("Levenshtein", "levenshtein"), ("google.protobuf", "protobuf"),
     ("docker", "docker"), ("azure.identity", "azure-identity"), ("azure.ai.inference.models", "azure-ai-inference"), ("google.api_core.retry", "google-api-core"),
     ("google.cloud.secretmanager", "google-cloud-secret-manager"), ("opentelemetry.trace", "opentelemetry-api"), ("opentelemetry.sdk.trace", "opentelemetry-sdk"),
     ("llama_index.core.llms", "llama-index-core"), ("openinference.semconv.trace", "openinference-semantic-conventions"), ("phoenix.evals", "arize-phoenix-evals"), ("strands_evals.types", "strands-agents-evals"), ("strands", "strands-agents"),
     ("pydantic_ai.messages", "pydantic-ai-slim")],
)  # fmt: skip
def test_a_module_is_of_the_package_that_people_mean(module: str, package: str) -> None:
    assert pin_for(module, PY) == package
    assert is_known(package, PY)


@pytest.mark.parametrize("module", ["~/models", "@/models", "./models"])
def test_a_path_that_the_author_shortened_is_of_no_package(module: str) -> None:
    assert pin_for(module, Language.TYPESCRIPT) is None


@pytest.mark.parametrize("module", ["azure.unheard.of", "google.colab", "opentelemetry_", "backports.of_mine"])
def test_a_module_of_a_namespace_is_of_no_other_package_there(module: str) -> None:
    assert not is_known(str(pin_for(module, PY)), PY)


def test_modules_that_code_may_import_have_their_place_in_a_namespace() -> None:
    texts = [
        "from azure import identity\nimport opentelemetry.sdk.trace, numpy.random\nfrom google.cloud import bigquery\n"
    ]
    found = {"azure.identity": "azure-identity", "opentelemetry.sdk.trace": "opentelemetry-sdk", "numpy": "numpy"}
    assert (found | {"google.cloud.bigquery": "google-cloud-bigquery"}).items() <= known_modules(PY, texts).items()


def test_modules_of_no_known_package_are_files_of_the_author() -> None:
    text = "from src.config import a\nimport rewards as r, os, numpy\n    import inner\nfrom . import b\n"
    assert known_modules(PY, [text]) == {"src": "", "rewards": "", "numpy": "numpy"}


def test_packages_that_a_script_may_import() -> None:
    text = "import { z } from 'zod';\nconst a = require(\"lodash/fp\"); await import('npm:@ai-sdk/openai@1.2.3');\n"
    more = "import x from './own'; import y from 'no-such-pack-age'; import fs from 'node:fs'; // 'chalk'"
    found = known_modules(JS, [text, more])
    assert found == {"zod": "zod", "lodash": "lodash", "@ai-sdk/openai": "@ai-sdk/openai", "no-such-pack-age": ""}


@pytest.mark.parametrize("name", ["rewards", "agent", "template", "metrics", "numpyy", "reqeusts", "sklean"])
def test_a_name_that_anybody_may_publish_is_not_known(name: str) -> None:
    assert not is_known(name, PY)
