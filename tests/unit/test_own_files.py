"""If an evaluator imports files of its project, the right files are sent with it, and other files are refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.packages.own_files import Project, explain_missing, find_project, texts_below, with_files
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError
from evaluator_host.vendors.uipath.modules import project_around, project_of
from evaluator_host.vendors.uipath.project import Layout
from tests.dialects.uipath.projects import write


def sent(root: Path, code: str, *, beside: str = "evals/evaluators/custom") -> Evaluator:
    """Return an evaluator together with the files that are sent with it."""
    file = root / beside / "mine.py"
    write(file, code)
    evaluator = with_files(Evaluator(code), file, project_of(Layout(root, "evals")))
    assert evaluator.code == code
    return evaluator


def modules(root: Path, code: str, **changes: Any) -> list[str]:
    """Return the path of each module that is sent with an evaluator."""
    return list(sent(root, code, **changes).files)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for name in ("models", "pkg/__init__", "pkg/inner", "pkg/deep/__init__", "pkg/deep/leaf", "ns/leaf", "both"):
        write(project / f"{name}.py", "x = 1\n")
    for name in ("helper", "both", "own/__init__", "own/leaf", "json"):
        write(project / "evals" / "evaluators" / "custom" / f"{name}.py", "x = 2\n")
    return project


HERE = "evals/evaluators/custom"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from models import x\n", ["models.py"]),
        ("import pkg.inner as y, json\n", ["pkg/__init__.py", "pkg/inner.py"]),
        ("from pkg import inner, x\n", ["pkg/__init__.py", "pkg/inner.py"]),
        ("from ns.leaf import x\n", ["ns/leaf.py"]),
        ("import helper\n", [f"{HERE}/helper.py"]),
        ("from own.leaf import x\n", [f"{HERE}/own/__init__.py", f"{HERE}/own/leaf.py"]),
        ("import both\n", ["both.py"]),
        ("from evals.evaluators.custom.helper import x\n", [f"{HERE}/helper.py"]),
        ('"""Said."""\nfrom __future__ import annotations\nimport models', ["models.py"]),
        ("def f():\n    try:\n        import models\n    except ImportError:\n        import pkg\n",
         ["models.py", "pkg/__init__.py"]),
        ("import models\nif TYPE_CHECKING:\n    import pkg\nelse:\n    import helper\n",
         [f"{HERE}/helper.py", "models.py"]),
    ],
)  # fmt: skip
def test_imported_modules_of_the_project_are_sent(root: Path, code: str, found: list[str]) -> None:
    assert modules(root, code) == found


@pytest.mark.parametrize(
    "code",
    [
        "import json, numpy, uipath.eval\nfrom __future__ import annotations\n",
        "from ....beyond import x\n",
        "import gone, models_\n",
        "def evaluate(:\n    import models\n",
        "import models\0",
        "x = '''\nimport models\n'''\n# import models",
        "",
    ],
)
def test_an_evaluator_without_local_imports_is_sent_as_it_is(root: Path, code: str) -> None:
    assert sent(root, code) == Evaluator(code)


def test_relative_imports_begin_in_the_evaluators_folder(root: Path) -> None:
    code = "from . import helper\nfrom .own.leaf import x\nfrom ....models import x\nfrom ...gone import y\n"
    found = sent(root, code)
    assert list(found.files) == [f"{HERE}/{name}.py" for name in ("helper", "own/__init__", "own/leaf")]
    assert found.path == f"{HERE}/mine.py"


def test_modules_come_with_their_texts(root: Path) -> None:
    write(root / "models.py", '\ufeff"""é"""\r\n\r\nfrom pkg import inner\n  \n')
    write(root / "pkg" / "inner.py", "from . import deep\nfrom .deep import leaf\nfrom ...beyond import y\n")
    found = sent(root, "import models")
    assert found.files["models.py"] == '"""é"""\n\nfrom pkg import inner\n  \n'
    assert list(found.files) == [
        "models.py", "pkg/__init__.py", "pkg/deep/__init__.py", "pkg/deep/leaf.py", "pkg/inner.py",
    ]  # fmt: skip


def test_the_root_is_looked_at_before_the_standard_library_as_there(root: Path) -> None:
    write(root / "statistics.py", "x = 1\n")
    write(root / "uipath.py", "x = 1\n")
    assert modules(root, "import statistics, json, uipath\n") == ["statistics.py"]


def test_files_that_may_contain_secrets_or_answers_are_not_sent(root: Path) -> None:
    for name in (".hidden/x", "venv/x", "build/x", "evals/eval_sets/x"):
        write(root / f"{name}.py", "secret = 1\n")
    write(root / "venv" / "pyvenv.cfg", "")
    write(root / ".env", "KEY=1")
    for name in ("venv.x", "build.x", "evals.eval_sets.x"):
        assert modules(root, f"import {name}\n") == []
    (root / "settings.py").symlink_to(root / ".env")
    with pytest.raises(
        InvalidRequest, match=r"settings\.py resolves through a link to .*\.env, a file that may not be sent"
    ):
        sent(root, "import settings\n")


def test_links_within_the_project_go_along_and_no_others(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside" / "leaf.py", "x = 1\n")
    (root / "alias.py").symlink_to("models.py")
    (root / "linked.py").symlink_to("/etc/passwd")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "round").symlink_to(root)
    (root / "nowhere.py").symlink_to("/not/there")
    assert modules(root, "import alias, nowhere\n") == ["alias.py"]
    with pytest.raises(InvalidRequest, match=r"linked\.py resolves through a link to /etc/passwd, outside the project"):
        sent(root, "import linked\n")
    with pytest.raises(InvalidRequest, match=r"folder/leaf\.py resolves through a link to .*, outside the project"):
        sent(root, "import folder.leaf\n")
    assert len(modules(root, f"import {'round.' * 5}models\n")) == 1
    os.mkfifo(root / "pipe.py")
    long = "a" * 300
    assert modules(root, f"import pipe, {long}\n") == []
    assert modules(root, f"import {'round.' * 5000}gone\n") == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x = '\0'\n", r"broken\.py contains a null byte"),
        (b"x = '\xff'\n", r"broken\.py is neither UTF-8"),
        (b"# coding: nonsense\n", r"broken\.py is neither UTF-8 nor in the encoding that it declares"),
        (b"#" * (1 << 20) + b"#", r"broken\.py is over 1 MB"),
    ],
)
def test_a_module_that_cannot_go_along(root: Path, content: bytes, said: str) -> None:
    (root / "broken.py").write_bytes(content)
    with pytest.raises(InvalidRequest, match=said):
        sent(root, "import broken\n")


def test_other_encodings_and_errors_of_syntax_are_the_sandboxes_matter(root: Path) -> None:
    (root / "old.py").write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    write(root / "broken.py", "import models\ndef x(:\n")
    write(root / "deep.py", "(" * 5000 + ")" * 5000)
    files = sent(root, "import old, broken, deep\n").files
    assert "x = 'é'\n" in files["old.py"]
    assert "def x(:" in files["broken.py"]


@pytest.mark.long
@pytest.mark.slow
def test_cycles_end_and_a_thousand_modules_are_refused(root: Path) -> None:
    write(root / "a.py", "import b, mine\n")
    write(root / "b.py", "import a\n")
    assert modules(root, "import a\n") == ["a.py", "b.py"]
    for number in range(1000):
        (root / f"m{number}.py").write_text(f"import m{number + 1}\n")
    with pytest.raises(InvalidRequest, match=r"more than 500 files or 3515 KB .*; import fewer"):
        sent(root, "import m0\n")


def test_too_much_says_what_is_large(root: Path) -> None:
    for name in ("large", "small"):
        write(root / f"{name}.py", "# x\n" * {"large": 200_000, "small": 30_000}[name])
    with pytest.raises(InvalidRequest, match=r"KB for its evaluator, .* largest files are large\.py, small\.py"):
        sent(root, "import large, small\n")


def test_the_project_around_a_file_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def around(file: Path) -> Path | None:
        found = project_around(file)
        return None if found is None else found.root

    assert around(root / HERE / "mine.py") == root
    assert around(root / "evals" / "evaluators" / "mine.py") == root
    assert around(root / "evals" / "mine.py") is None
    assert around(root / "models.py") is None
    monkeypatch.chdir(root / HERE)
    assert around(Path("mine.py")) == root


def test_the_root_is_marked_or_the_working_directory_or_the_files_own_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = root / "evals" / "score.py"
    monkeypatch.chdir("/")
    assert find_project(root.parent / "x.py").root == Path("/")
    monkeypatch.chdir(root)
    assert find_project(file).root == root
    assert find_project(root.parent / "x.py").root == root.parent
    (root / "evals" / "package.json").touch()
    assert find_project(file).root == root / "evals"


def test_modules_below_src_keep_their_names(root: Path) -> None:
    write(root / "src" / "shop" / "__init__.py", "")
    write(root / "src" / "shop" / "text.py", "from .more import x\n")
    write(root / "src" / "shop" / "more.py", "x = 1\n")
    found = with_files(Evaluator("from shop.text import x\n"), root / "score.py", Project(root))
    assert (list(found.files), found.path) == (["shop/__init__.py", "shop/more.py", "shop/text.py"], "score.py")


def test_scripts_come_by_their_relative_paths(root: Path) -> None:
    for path, text in {
        "lib/text.ts": "import type { Row } from './types'; export { x } from './more/index.js'; import y from '../d.json'",
        "lib/types.ts": "export interface Row {}",
        "lib/more/index.ts": "const z = require('./gone'); import('../text')",
        "d.json": "{}",
        "node_modules/pack/index.js": "no",
    }.items():
        write(root / path, text)
    code = "import { x } from '../lib/text';\nimport pack from 'pack';\nimport '../node_modules/pack/index.js'\n"
    found = with_files(Evaluator(code, Language.TYPESCRIPT), root / "evals" / "s.ts", Project(root))
    assert list(found.files) == ["d.json", "lib/more/index.ts", "lib/text.ts", "lib/types.ts"]
    assert found.path == "evals/s.ts"
    write(root.parent / "outside.js", "")
    with pytest.raises(InvalidRequest, match="outside the project"):
        with_files(Evaluator("require('../outside')", Language.JAVASCRIPT), root / "s.js", Project(root))


def test_data_goes_along_when_it_is_named(root: Path, tmp_path: Path) -> None:
    write(root / "data" / "words.json", "[]")
    write(tmp_path / "secret.txt", "no")
    own = Evaluator("x = 1\n")
    found = with_files(own, root / "score.py", Project(root), extra=[root / "data" / "words.json"])
    assert (found.files, found.path) == ({"data/words.json": "[]"}, "score.py")
    for outside in (tmp_path / "secret.txt", root / "gone.txt", root / "data"):
        with pytest.raises(InvalidRequest, match=r"is not in the project|cannot read"):
            with_files(own, root / "score.py", Project(root), extra=[outside])


def test_a_module_that_is_missing_is_explained(root: Path) -> None:
    file = root / HERE / "mine.py"
    error = EvaluationError(ErrorCode.LOAD_ERROR, "No module named 'numpi.x'", "ModuleNotFoundError", hint="pin it")
    hint = explain_missing(error, file, root).hint
    assert hint == (
        f"neither Python nor a pinned package has numpi.x, and there is no module numpi/x.py and no package numpi/x/ "
        f"in {root} and in {root / HERE}; put it there, or pin its package: --package NAME==VERSION"
    )
    left = EvaluationError(ErrorCode.LOAD_ERROR, "No module named 'models'", "ModuleNotFoundError")
    assert str(explain_missing(left, file, root).hint).startswith(f"{root / 'models.py'} was not sent")
    odd = EvaluationError(ErrorCode.LOAD_ERROR, "No module named '../../etc'", "ModuleNotFoundError")
    assert explain_missing(odd, file, root) is odd
    other = EvaluationError(ErrorCode.LOAD_ERROR, "it's not", "ValueError")
    assert explain_missing(other, file, root) is other


@pytest.fixture
def checkout(root: Path) -> Path:
    """Put the project into a checkout, add modules beside the project and in the project's folders, and return the
    project.
    """
    above = root.parent
    (above / ".git").mkdir()
    (root / "pyproject.toml").touch()
    for path in (
        "shared/__init__",
        "shared/text",
        "chess/__init__",
        "src/wide",
        "project/evals/between",
        "project/deep",
    ):
        write(above / f"{path}.py", "x = 1\n")
    return root


def modules_of(file: Path, code: str) -> list[str]:
    write(file, code)
    return list(with_files(Evaluator(code), file, find_project(file)).files)


def test_modules_that_the_project_lacks_come_from_its_checkout(checkout: Path) -> None:
    file = checkout / HERE / "mine.py"
    assert modules_of(file, "from shared.text import x\n") == ["shared/__init__.py", "shared/text.py"]
    assert modules_of(file, "import wide, between, deep\n") == ["between.py", "deep.py", "wide.py"]
    # the module of the project comes before that of the checkout
    assert modules_of(file, "import both\n") == ["both.py"]
    (checkout.parent / "linked.py").symlink_to("/etc/passwd")
    write(checkout.parent / ".secret" / "leaf.py", "x = 1\n")
    with pytest.raises(InvalidRequest, match=r"linked\.py resolves through a link to .*, outside the project"):
        modules_of(file, "import linked\n")
    (checkout.parent / "hidden.py").symlink_to(".secret/leaf.py")
    with pytest.raises(
        InvalidRequest, match=r"hidden\.py resolves through a link to .*leaf\.py, a file that may not be sent"
    ):
        modules_of(file, "import hidden\n")


def test_a_folder_of_the_checkout_is_not_a_well_known_package(checkout: Path) -> None:
    """A folder of the checkout does not count as a well-known package: `import ragas` means the package, and not a
    folder `evals/ragas` between the evaluator and the root.
    """
    write(checkout / "evals" / "ragas" / "__init__.py", "x = 1\n")
    assert modules_of(checkout / HERE / "mine.py", "import chess, ragas\nimport json, evaluator\n") == []


def test_a_folder_src_that_is_a_package_has_no_modules_of_its_own(root: Path) -> None:
    write(root / "src" / "chess" / "__init__.py", "x = 1\n")
    write(root / "src" / "utils.py", "x = 1\n")
    code = "import chess\nfrom src.utils import x\n"
    project = Project(root)
    assert "chess/__init__.py" in with_files(Evaluator(code), root / "score.py", project).files
    write(root / "src" / "__init__.py", "")
    found = with_files(Evaluator(code), root / "score.py", project)
    assert list(found.files) == ["src/__init__.py", "src/utils.py"]


PATHS = {"@/*": ["./src/*"], "@/lib/only": ["./lib/only.ts"]}
WITH_PATHS = json.dumps({"compilerOptions": {"paths": PATHS}})


@pytest.mark.parametrize(
    ("configs", "specifier", "found", "options"),
    [
        ({"tsconfig.json": '{ // its\n "compilerOptions": {"paths": {"@/*": ["src/*",],}, /* a */ "strict": true} }'}, "@/lib/text", "src/lib/text.ts", {"paths": {"@/*": ["./src/*"]}}),
        ({"tsconfig.json": WITH_PATHS}, "@/lib/only", "lib/only.ts", {"paths": PATHS}),
        ({"tsconfig.json": '{"extends": "./base", "compilerOptions": {"experimentalDecorators": true}}', "base.json": WITH_PATHS}, "@/lib/text.js", "src/lib/text.ts", {"paths": PATHS, "experimentalDecorators": True}),
        ({"tsconfig.json": '{"compilerOptions": {"baseUrl": "src", "paths": {"~/*": ["lib/*"]}}}'}, "~/text", "src/lib/text.ts", {"baseUrl": "./src", "paths": {"~/*": ["./src/lib/*"]}}),
        ({"jsconfig.json": '{"compilerOptions": {"baseUrl": "."}}'}, "src/lib/text", "src/lib/text.ts", {"baseUrl": "."}),
        ({"package.json": '{"imports": {"#lib/*": {"types": "./no/*", "default": "./src/lib/*"}}}'}, "#lib/text.ts", "src/lib/text.ts", {"paths": {"#lib/*": ["./src/lib/*"]}}),
    ],
)  # fmt: skip
def test_scripts_come_by_the_aliases_of_their_project(
    root: Path, configs: dict[str, str], specifier: str, found: str, options: dict[str, Any]
) -> None:
    files = aliased(root, configs, specifier)
    [config] = files.keys() - {found}
    assert json.loads(files[config])["compilerOptions"] == options


@pytest.mark.parametrize(
    ("config", "specifier"),
    [
        (WITH_PATHS, "openai"),
        ('{"compilerOptions": {"paths": {"@/*": ["../*"]}}}', "@/outside"),
        ("{", "@/lib/text"),
        pytest.param('\\"' * 100_000, "@/lib/text", id="strings without an end"),
        pytest.param("/* " * 66_000, "@/lib/text", id="comments without an end"),
    ],
)
def test_a_script_that_no_alias_names_stays_where_it_is(root: Path, config: str, specifier: str) -> None:
    assert aliased(root, {"tsconfig.json": config}, specifier) == {}


def aliased(root: Path, configs: dict[str, str], specifier: str) -> dict[str, str]:
    """Return the files that are sent with an evaluator that imports `specifier`, in a project with these configurations."""
    scripts = dict.fromkeys(("src/lib/text.ts", "lib/only.ts", "../outside.ts"), "export const x = 1")
    for path, text in {**scripts, **configs}.items():
        write(root / path, text)
    code = f"import {{ x }} from '{specifier}'"
    return with_files(Evaluator(code, Language.TYPESCRIPT), root / "evals" / "s.ts", Project(root)).files


def test_a_script_may_import_from_above_its_project_in_the_checkout(checkout: Path) -> None:
    write(checkout.parent / "lib" / "text.ts", "import './prompt.md'; import './style.css'; export const x = 1;")
    for name in ("prompt.md", "style.css"):
        write(checkout.parent / "lib" / name, "words")
    file = checkout / "evals" / "s.ts"
    code = "import { x } from '../../lib/text';\n"
    found = with_files(Evaluator(code, Language.TYPESCRIPT), file, find_project(file))
    assert (list(found.files), found.path) == (["lib/prompt.md", "lib/text.ts"], "project/evals/s.ts")
    outside = Evaluator("require('../../../outside')", Language.JAVASCRIPT)
    write(checkout.parent.parent / "outside.js", "")
    with pytest.raises(InvalidRequest, match="outside the project"):
        with_files(outside, file, find_project(file))


@pytest.mark.slow
def test_a_folder_goes_along_without_what_must_stay(root: Path) -> None:
    for path in ("data/words.json", "data/deep/more.txt", "data/.env", "data/node_modules/x.js", "data/.git/config"):
        write(root / path, "{}")
    write(root / "evals" / "eval_sets" / "answers.json", "{}")
    (root / "data" / "logo.png").write_bytes(b"\x89PNG\xff")
    (root / "data" / "linked.txt").symlink_to("/etc/passwd")
    (root / "data" / "round").symlink_to(root / "data")
    os.mkfifo(root / "data" / "pipe")
    texts, others = texts_below(root / "data", Project(root))
    assert [path.name for path in texts] == ["more.txt", "words.json"]
    assert [path.name for path in others] == ["linked.txt", "logo.png", "pipe"]
    layout = project_of(Layout(root, "evals"))
    for project, folder in ((layout, root), (layout.rooted(root / "evals"), root / "evals")):
        assert not [path for path in texts_below(folder, project)[0] if "eval_sets" in path.parts]
    for other, said in ((root.parent, "is not in the project"), (root / "models.py", "is not a folder")):
        with pytest.raises(InvalidRequest, match=said):
            texts_below(other, Project(root))
    for number in range(501):
        write(root / "data" / f"{number}.txt", "x")
    with pytest.raises(InvalidRequest, match="more than 500 files; name a smaller folder"):
        texts_below(root / "data", Project(root))


def test_a_module_of_the_checkout_that_code_reaches_by_its_own_path(checkout: Path) -> None:
    above = checkout.parent
    write(above / "00_setup" / "keywords.py", "import beside_it\n")
    write(above / "00_setup" / "beside_it.py", "x = 1\n")
    for name in ("a", "b"):
        write(above / name / "twice.py", "x = 1\n")
    write(above / "vendored" / "numpy" / "__init__.py", "x = 1\n")
    write(above / "build" / "built.py", "x = 1\n")
    code = "import sys; sys.path.insert(0, '../00_setup')\nimport keywords, twice, numpy, built\n"
    assert modules_of(checkout / HERE / "mine.py", code) == ["beside_it.py", "keywords.py"]


@pytest.mark.slow
def test_the_sources_of_a_whole_package_stay_where_they_are_too_many(root: Path) -> None:
    write(root / "ragas" / "__init__.py", "".join(f"import ragas.m{number}\n" for number in range(600)))
    for number in range(600):
        write(root / "ragas" / f"m{number}.py", "x = 1\n")
    assert modules(root, "import ragas, models\n") == ["models.py"]
    write(root / "ragas" / "__init__.py", "x = 1\n")
    assert modules(root, "import ragas, models\n") == ["models.py", "ragas/__init__.py"]
