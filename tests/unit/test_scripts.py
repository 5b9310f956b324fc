"""A PEP 723 block in a file tells the host the file's pins and Python version."""

import pytest

from evaluator_host.engine.packages.scripts import read_script, require_python
from evaluator_host.types.errors import InvalidPin, InvalidRequest
from evaluator_host.types.evaluator import Language

PYTHON = Language.PYTHON


def test_a_block_in_the_file_pins_its_packages() -> None:
    source = '# /// script\r\n# requires-python = ">=3.11"\r\n# dependencies = [\r\n#   "NumPy==2.1",\r\n# ]\r\n# ///\r\nimport numpy\r\n'
    script = read_script(source, PYTHON)
    assert [pin.text for pin in script.pins] == ["numpy==2.1.0"]
    assert (script.source, script.requires_python) == (source, ">=3.11")


@pytest.mark.parametrize("source", ["", "import numpy\n", "# /// other\n# x = 1\n# ///\n", 'x = "# /// script"\n'])
def test_a_file_without_a_block_pins_nothing(source: str) -> None:
    assert read_script(source, PYTHON).pins == ()


@pytest.mark.parametrize(
    ("block", "what"),
    [
        ("# dependencies = [", "TOML"),
        ('# dependencies = "numpy==2.1"', "list"),
        ("# dependencies = [1]", "list"),
        ('# requires-python = "three"', "requires-python"),
        ("# requires-python = 3", "requires-python"),
        ("# x = 1\n# ///\n\n# /// script\n# y = 1", "two"),
    ],
)
def test_a_bad_block_says_what_is_wrong(block: str, what: str) -> None:
    with pytest.raises(InvalidRequest, match=what):
        read_script(f"# /// script\n{block}\n# ///\n", PYTHON)


@pytest.mark.parametrize(
    ("required", "version", "fits"),
    [
        (">=3.11", "3.11", True),
        (">=3.11.4", "3.11", True),  # accepted, because 3.11 may be this release or an older one
        (">=3.11.4", "3.11.2", False),
        ("==3.12.*", "3.11", False),
        ("<3.13", "3.13", False),
        ("~=3.10", "3.13", True),
    ],
)
def test_the_python_that_a_file_requires_is_checked(required: str, version: str, *, fits: bool) -> None:
    if fits:
        require_python(required, version)
        return
    with pytest.raises(InvalidRequest, match=f"requires Python .*{version}"):
        require_python(required, version)


def test_a_range_in_the_block_is_refused_as_anywhere() -> None:
    with pytest.raises(InvalidPin) as caught:
        read_script('# /// script\n# dependencies = ["numpy>=2.1.0"]\n# ///\n', PYTHON)
    assert caught.value.problems[0].hint == "numpy==2.1.0"
