"""To find the modules of a wheel, the host reads only the list of the wheel's files."""

import io
import zipfile

import pytest

from evaluator_host.engine.packages.pip.contents import Contents

FILES = {
    "flat.py": "ONE = 1\ndef two(): pass\nclass Three: pass\nfrom json import loads as four\nif ONE:\n    FIVE = 5\n",
    "pack/__init__.py": "from .inner import *\nfrom . import sub\n__all__ = ['Six']\n",
    "pack/inner.py": "Six = 6\nfrom .sub import *\n",
    "pack/sub/__init__.py": "from ..inner import *\nseven = 7\n",
    "lazy/__init__.py": "__getattr__, __dir__, __all__ = attach(__name__)\n",
    "lazy/__init__.pyi": "from .much import Eight\n",
    "itself/__init__.py": "import sys\nsys.modules[__name__] = Lazy()\n",
    "copied/__init__.py": "from .whole import made\nfor one in dir(made):\n    globals()[one] = getattr(made, one)\n",
    "copied/whole.py": "class Made:\n    def Eleven(self): pass\nmade = Made()\n",
    "wide/__init__.py": "".join(f"from .part{number} import *\n" for number in range(200)),
    **{f"wide/part{number}.py": f"name{number} = {number}\n" for number in range(200)},
    "native/__init__.py": "from .native import setup\n",
    "native/native.cpython-311-x86_64-linux-gnu.so": "",
    "alone.abi3.so": "",
    "space/google/part/__init__.py": "Nine = 9\n",
    "x-1.0.data/purelib/moved.py": "Ten = 10\n",
    "broken.py": "def (\n",
    "x-1.0.dist-info/METADATA": "Name: x",
}


@pytest.fixture
def contents() -> Contents:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, text in FILES.items():
            made.writestr(name, text)
    return Contents(zipfile.ZipFile(file))


@pytest.mark.parametrize(
    ("module", "has", "lacks"),
    [
        ("flat", "ONE two Three Three.method four FIVE", "nothing loads json.x"),
        ("pack", "inner sub Six seven sub.seven inner.Six", "nothing sub.nothing"),
        ("pack.sub", "seven Six", "inner"),
        ("lazy", "Eight", "nothing"),
        ("itself", "anything", ""),
        ("copied", "Eleven made", "nothing"),
        ("wide", "name0 name199 part7", "name200"),
        ("native", "anything", ""),
        ("alone", "anything", ""),
        ("space.google.part", "Nine", "Six"),
        ("space", "google google.part.Nine", "nothing"),
        ("moved", "Ten", "Nine"),
        ("broken", "", "anything"),
    ],
)
def test_a_module_has_the_names_that_its_files_bind(contents: Contents, module: str, has: str, lacks: str) -> None:
    assert contents.names(module, [*has.split(), *lacks.split()]) == has.split()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("module", ["other", "x-1.0", "METADATA", "pack.none", "inner"])
def test_a_module_that_a_wheel_lacks_is_reported(contents: Contents, module: str) -> None:
    assert contents.names(module, []) is None
