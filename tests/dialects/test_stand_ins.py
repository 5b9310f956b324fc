"""The host gives its small replacement of an SDK to the right evaluators, with the packages that they then need."""

import pytest

from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.preparer import sdk_needs
from evaluator_host.engine.service.stand_in_pins import stand_in_pin
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.vendors.uipath.dialect import SDK as UIPATH

IMPORT = "from nemo_evaluator_sdk import Metric\n"
TARGET = LockTarget("3.11", "x86_64", (2, 36))


@pytest.mark.parametrize(
    "code",
    [
        IMPORT,
        "import nemo_evaluator_sdk\n",
        "import json, nemo_evaluator_sdk as sdk\n",
        "try:\n    from nemo_evaluator_sdk.values import DatasetRow\nexcept ImportError:\n    pass\n",
        "x = 1; import nemo_evaluator_sdk.metrics.protocol\n",
        "1\tfrom nemo_evaluator_sdk import Metric\n2\t\n3\tclass M(Metric):\n4\t    pass\n",
        "```python\nfrom nemo_evaluator_sdk import Metric\n```",
    ],
)
def test_an_import_of_the_sdk_is_enough(code: str) -> None:
    assert sdk_needs(Evaluator(code)) is not None


@pytest.mark.parametrize(
    "evaluator",
    [
        Evaluator("# from nemo_evaluator_sdk import Metric\n"),
        Evaluator("x = 'import nemo_evaluator_sdk'\n"),
        Evaluator("from nemo_evaluator_sdk_more import x\n"),
        Evaluator(IMPORT, language=Language.JAVASCRIPT),
        Evaluator(IMPORT, packages=("nemo-platform==0.3.0",)),
        Evaluator(IMPORT, packages=("NeMo_Platform[nemo-evaluator-sdk] == 0.3.0",)),
    ],
)
def test_no_other_evaluator_is_given_it(evaluator: Evaluator) -> None:
    assert sdk_needs(evaluator) is None


def test_the_declared_contract_is_enough_too() -> None:
    assert sdk_needs(Evaluator("import importlib", contract=Contract("nemo"))) is not None


@pytest.mark.parametrize(
    ("code", "packages", "missing"),
    [
        (IMPORT, (), {"pydantic", "jinja2"}),
        (IMPORT, ("Pydantic==2.11.0", "numpy==2.1.0"), {"jinja2"}),
        (IMPORT + "ROUGEMetric", (), {"pydantic", "jinja2", "rouge-score"}),
        (IMPORT + "BLEUMetric", ("sacrebleu@2.5.1",), {"pydantic", "jinja2"}),
    ],
)
def test_packages_that_the_evaluator_pins_are_not_added(
    code: str, packages: tuple[str, ...], missing: set[str]
) -> None:
    needs = sdk_needs(Evaluator(code, packages=packages))
    assert needs is not None
    assert {pin.partition("==")[0] for pin in needs.pins} == missing


def test_added_packages_are_not_listed_as_pins_of_the_evaluator() -> None:
    needs = sdk_needs(Evaluator(IMPORT, packages=("numpy==2.1.0", "pydantic==2.11.0")))
    assert needs is not None
    assert needs.without(("jinja2==3.1.5", "numpy==2.1.0", "pydantic==2.11.0")) == ("numpy==2.1.0", "pydantic==2.11.0")


def test_the_lock_that_comes_along_has_hashes_for_all_that_is_needed_and_nothing_else() -> None:
    needs = sdk_needs(Evaluator(IMPORT))
    assert needs is not None
    lock = needs.lock(TARGET)
    names = {package.name for package in lock.packages}

    assert {package.name for package in lock.packages if package.requested} == {"pydantic", "jinja2"}
    assert names > {"pydantic-core", "markupsafe", "typing-extensions"}
    assert "sacrebleu" not in names
    assert all(package.hashes and set(package.dependencies) <= names for package in lock.packages)
    assert lock.text.count("--hash=sha256:") == sum(len(package.hashes) for package in lock.packages)


@pytest.mark.parametrize("contract", [Contract.AUTO, Contract("uipath")])
def test_evaluators_of_uipath_are_given_its_modules(contract: Contract) -> None:
    code = "from uipath.eval.models import AgentExecution\n" if contract is Contract.AUTO else ""
    needs = sdk_needs(Evaluator(code, contract=contract, packages=("pydantic==2.11.0",)))
    assert needs is not None
    assert (needs.stand_in, needs.missing) == (UIPATH.stand_in, {"opentelemetry-sdk"})
    assert {package.name for package in needs.lock(TARGET).packages} > {"opentelemetry-api", "opentelemetry-sdk"}
    assert sdk_needs(Evaluator(code, contract=contract, packages=("uipath==2.7.0",))) is None


def test_the_declared_contract_says_which_of_two_sdks_is_meant() -> None:
    needs = sdk_needs(Evaluator(IMPORT + "import uipath.eval\n", contract=Contract("uipath")))
    assert needs is not None
    assert needs.stand_in == UIPATH.stand_in


@pytest.mark.parametrize("module", ["ragas.integrations.langchain", "phoenix.evals.legacy"])
async def test_a_check_names_the_same_pin_as_the_error_of_a_row(service: Service, module: str) -> None:
    """A check and a row's error name the same pin: the version with which the host's replacement of the package was
    tested, whatever versions the index has.
    """
    code = f"from {module} import EvaluatorChain\ndef evaluate(inputs, outputs, trace):\n    return float(EvaluatorChain(1))\n"
    pin = stand_in_pin(module, (), Language.PYTHON)
    assert pin is not None
    (missing,) = (await service.check(Evaluator(code))).missing_imports
    assert missing.pin == pin
    error = (await service.evaluate(Evaluator(code), Row())).error
    assert error is not None
    assert error.hint == f"add {pin} to `packages`"


def test_the_part_of_a_package_that_code_reads_decides_on_its_pin() -> None:
    whole = stand_in_pin("phoenix", (), Language.PYTHON)
    parts = {
        stand_in_pin("phoenix", ("evals.legacy",), Language.PYTHON),
        stand_in_pin("phoenix.evals", (), Language.PYTHON),
    }
    assert (whole or "").startswith("arize-phoenix==")
    assert [(one or "").partition("==")[0] for one in parts] == ["arize-phoenix-evals"]
