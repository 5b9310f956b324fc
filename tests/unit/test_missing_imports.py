"""The host looks up the package that provides a missing import, and does so only once for many rows."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from evaluator_host.engine.packages.providers import ImportedModule, Provider, named_provider
from evaluator_host.engine.service import missing_imports
from evaluator_host.engine.service.files import path_of_module
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.errors import Busy
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Failed, Kind, MissingImport, Returned

PY, JS, TS = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT


def error(message: str) -> EvaluationError:
    return EvaluationError(ErrorCode.LOAD_ERROR, message)


@pytest.mark.parametrize(
    ("message", "missing", "language", "hint"),
    [
        ("No module named 'numpy'", MissingImport("numpy", 1, "numpy==2.4.6"), PY, "add numpy==2.4.6 to `packages`"),
        ("No module named 'numpy.linalg'", MissingImport("numpy", 1, "numpy==2.4.6"), PY, "add numpy==2.4.6"),
        ("No module named 'cv2'", MissingImport("cv2", 1, "opencv-python"), PY, "add an exact pin of opencv-python to"),
        ("No module named 'own'", MissingImport("own", 1, None, None, "own.py"), PY, '{"own.py": "…"}'),
        ("No module named 'rubric'", MissingImport("rubric", 1, "rubric==1.0", None, "rubric.py"), PY, 'rubric is probably a file of yours: send it in `files`, by its path: {"rubric.py": "…"}; if you mean the package of that name, add rubric==1.0'),
        ("Cannot find module './own'", MissingImport("./own", 1, None, None, "a/own.js"), JS, '{"a/own.js": "…"}'),
        ("Cannot find module './own.js'", MissingImport("./own.js", 1, None, None, "own.ts"), TS, '{"own.ts": "…"}'),
        ("Cannot find module './own.mjs'", MissingImport("./own.mjs", 1, None, None, "own.mjs"), TS, '{"own.mjs": "…"}'),
        ("Cannot find module '@a/b/c'", MissingImport("@a/b/c", 1, "@a/b@1.0.0"), JS, "add @a/b@1.0.0 to `packages`"),
        ("Cannot find module '@a/b'", MissingImport("@a/b", 1, "@a/b"), JS, "add an exact pin of @a/b to `packages`"),
        ("`openai.OpenAI()` needs the package openai, which …", MissingImport("openai", 1, "openai==1.0"), PY, "then add openai==1.0"),
        ("`langchain_openai.ChatOpenAI()` needs the package langchain-openai, which …", MissingImport("langchain_openai", 1, "langchain-openai==1.7"), PY, "reaches a model only if it is granted one"),
        ("`own.parts.run` needs the package own, which is not pinned", MissingImport("own.parts", 1, "own==1.0", None, "own.py"), PY, "add own==1.0 to `packages`"),
        ("No module named 'httpx'", MissingImport("httpx", 1, "httpx==0.28"), PY, "To import httpx nevertheless, add httpx==0.28"),
    ],
)  # fmt: skip
def test_an_error_of_an_import_says_what_provides_it(
    message: str, missing: MissingImport, language: Language, hint: str
) -> None:
    evaluator = Evaluator("", language=language)
    caught = MissingImport("other", 9, "other==1.0")
    found = missing_imports.hint_on_import(error(message), [caught, missing], evaluator)
    assert found is not None
    assert hint in found
    assert ("a file of yours" in found) is (missing.path is not None and "not pinned" not in message)
    assert missing_imports.hint_on_import(error("division by zero"), [missing], evaluator) is None
    of_function = error("`ai` needs `expected`, which the row does not have")
    assert missing_imports.hint_on_import(of_function, [missing], evaluator) is None
    failed = Failed(error(message), imports=(caught, missing))
    assert missing_imports.caught(failed) == (caught,)


@pytest.mark.parametrize(
    ("files", "tail"), [({}, "; in your project's folder, `evaluator-host run FILE` sends"), ({"a.py": ""}, "")]
)
def test_the_advice_on_a_missing_file_names_the_other_missing_files(files: dict[str, str], tail: str) -> None:
    missing = [MissingImport(name, 1, path=path) for name, path in (("src.b", "src/b.py"), ("src.a", "src/a.py"))]
    missing.append(MissingImport("numpy", 1, "numpy==2.4.6"))
    found = missing_imports.hint_on_import(error("No module named 'src'"), missing, Evaluator("", files=files))
    told = "src.b is a file of yours: send it and the other missing files in `files`, by their paths: "
    assert found is not None
    assert found.startswith(told + '{"src/b.py": "…", "src/a.py": "…"}' + tail)
    assert in_options(found) == (
        "src.b is a file of yours: send it and the other missing files with --files FOLDER, the folder of your project"
    )


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("tests.scoring", '{"tests/scoring.py": "…"}'),
        ("own_app.services.parts", '{"own_app/services/parts.py": "…"}'),
        ("numpy", None),
    ],
)
def test_an_import_that_nobody_recorded_may_be_a_file_of_the_author(module: str, hint: str | None) -> None:
    found = missing_imports.hint_on_import(error(f"No module named '{module}'"), [], Evaluator(""))
    assert (found is None) if hint is None else hint in (found or "")


@pytest.mark.parametrize(("models", "told"), [((), True), (("judge",), False)])
def test_a_missing_client_of_a_model_means_that_no_model_answered(models: tuple[str, ...], told: bool) -> None:
    (note,) = missing_imports.notes([MissingImport("litellm", 1)], Evaluator("", models=models))
    assert ("no model has answered" in note.message) is told


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("packages/text", "packages/text.ts"),
        ("src/lib/text", "src/lib/text.ts"),
        ("./own.js", "own.ts"),
        ("./own.mjs", "own.mjs"),
        ("lodash/get", None),
    ],
)
def test_a_script_in_a_usual_folder_is_a_file_of_the_author(module: str, path: str | None) -> None:
    assert path_of_module(Evaluator("", Language.TYPESCRIPT), MissingImport(module, 1, "packages==1")) == path


@pytest.mark.parametrize("module", ["@/lib/text", "~/text", "#lib/text"])
def test_a_file_behind_an_alias_is_sent_with_the_configuration(module: str) -> None:
    found = missing_imports.remedy(MissingImport(module, 1), Evaluator("", Language.TYPESCRIPT))
    assert "with the tsconfig.json" in (found or "")


def test_a_granted_client_is_not_told_of_the_network() -> None:
    evaluator = Evaluator("", models=("judge",), network=("example.com",))
    for one in (MissingImport("openai", 1, "openai==1.0"), MissingImport("httpx", 1, "httpx==0.28")):
        assert missing_imports.remedy(one, evaluator) == f"add {one.pin} to `packages`"


def test_each_caught_import_is_one_warning() -> None:
    imports = (MissingImport("a", 2, "a==1"), MissingImport("a", 7, "a==1"), MissingImport("b", 3, None, "x.py"))
    imports += (MissingImport("c", 1, "c==1", optional=True),)
    returned = Returned(Kind.NUMBER, 1, imports=imports)
    notes = list(missing_imports.notes(missing_imports.caught(returned), Evaluator("")))
    told = {(note.code, note.message.partition(",")[0], note.remedy) for note in notes}
    assert len(notes) == 2
    assert {code for code, _, _ in told} == {"missing_import"}
    assert any(
        "line 2: a could not be imported" in note.message and note.remedy == "add a==1 to `packages`" for note in notes
    )
    assert any(note.message.startswith("x.py, line 3: b") and note.remedy is None for note in notes)


class Index:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answers = asyncio.Event()
        self.busy = False

    async def __call__(
        self, modules: Sequence[ImportedModule], language: Language, _python: str | None, *, workspace: str
    ) -> list[Provider]:
        self.asked.append([one.module for one in modules])
        await self.answers.wait()
        if self.busy:
            raise Busy("too many", retry_after_s=1)
        named = [named_provider(one.module, language) for one in modules]
        return [replace(found, pin=f"{one.module}==1.0") for one, found in zip(modules, named, strict=True)]


async def test_the_index_is_asked_once_for_all_rows() -> None:
    index, evaluator = Index(), Evaluator("")
    index.answers.set()
    lookup = PinLookup(index)
    missing = (MissingImport("numpy", 1), MissingImport("scipy", 2))
    found = await asyncio.gather(*(lookup.find(missing, evaluator, "w", patience_s=5) for _ in range(20)))
    assert {one.pin for row in found for one in row} == {"numpy==1.0", "scipy==1.0"}
    assert index.asked == [["numpy", "scipy"]]
    await lookup.find(missing, evaluator, "w")
    await lookup.find((*missing, MissingImport("rich", 3)), evaluator, "w")
    assert index.asked == [["numpy", "scipy"], ["rich"]]


async def test_a_slow_index_holds_up_no_row_and_its_answer_is_for_the_next() -> None:
    index, evaluator = Index(), Evaluator("")
    lookup = PinLookup(index)
    missing = (MissingImport("yaml", 1),)
    assert (await lookup.find(missing, evaluator, "w", patience_s=0))[0].pin == "pyyaml"
    index.answers.set()
    assert (await lookup.find(missing, evaluator, "w"))[0].pin == "yaml==1.0"
    assert len(index.asked) == 1


async def test_a_busy_index_gives_the_name_alone() -> None:
    index = Index()
    index.busy = True
    index.answers.set()
    found = await PinLookup(index).find((MissingImport("yaml", 1),), Evaluator(""), "w")
    assert found[0].pin == "pyyaml"


async def test_an_evaluator_of_many_imports_asks_for_the_first() -> None:
    index = Index()
    index.answers.set()
    many = tuple(MissingImport(f"module{i}", i + 1) for i in range(500))
    found = await PinLookup(index).find(many, Evaluator(""), "w")
    assert (len(found), [len(one) for one in index.asked]) == (500, [20])


@pytest.mark.parametrize(
    ("module", "language", "pin", "path"),
    [
        ("rubrics", PY, "rubrics==1.0", "rubrics.py"),
        ("scoring.text", PY, "scoring.text==1.0", "scoring/text.py"),
        ("numpy", PY, "numpy==1.0", None),
        ("sklearn.metrics", PY, "sklearn.metrics==1.0", None),
        ("math_verify", PY, "math_verify==1.0", None),
        ("helpers", PY, None, "helpers.py"),
        ("rubrics", JS, "rubrics==1.0", None),
    ],
)
async def test_an_unknown_package_is_probably_a_file_of_the_users(
    module: str, language: Language, pin: str | None, path: str | None
) -> None:
    index = Index()
    index.answers.set()
    (found,) = await PinLookup(index).find((MissingImport(module, 1),), Evaluator("", language=language), "w")
    assert (found.pin, found.path) == (pin, path)


@pytest.mark.parametrize(
    ("kind", "message", "language", "module", "extras"),
    [
        ("ImportError", "fastembed is not installed. Please install it, e.g. with `pip install fastembed`.", PY, "fastembed", ""),
        ("ImportError", "Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.", PY, "openpyxl", ""),
        ("ModuleNotFoundError", "To use this, please install sentence-transformers.", PY, "sentence_transformers", ""),
        ("ValueError", "You need scikit-learn: pip install -U scikit-learn", PY, "sklearn", ""),
        ("ImportError", "Run `pip install 'transformers[torch]'` or `pip install accelerate`", PY, "transformers", "[torch]"),
        ("Error", "Please run: npm install --save zod", JS, "zod", ""),
        ("ImportError", "pip install git+https://github.com/some/one", PY, None, ""),
        ("ImportError", "pip install a-package-of-nobody-knows", PY, None, ""),
        ("ValueError", "please install openpyxl", PY, None, ""),
        ("ImportError", "cannot import name 'pip' from 'install'", PY, None, ""),
    ],
)  # fmt: skip
def test_a_package_that_a_library_asks_for_is_named_with_its_pin(
    kind: str, message: str, language: Language, module: str | None, extras: str
) -> None:
    evaluator = Evaluator("", language=language)
    failed = Failed(replace(error(message), type=kind, line=3))
    found = missing_imports.missing_of(failed, evaluator)
    assert [(one.module, one.line, one.optional) for one in found] == ([(module, 3, True)] if module else [])
    if module is None:
        return
    pinned = replace(found[0], pin="named==1.2" if language is PY else "named@1.2")
    hint = missing_imports.hint_on_import(failed.error, [pinned], evaluator)
    assert hint == f"add named{extras}{'==' if language is PY else '@'}1.2 to `packages`"
    assert list(missing_imports.notes(missing_imports.caught(replace(failed, imports=(pinned,))), evaluator)) == []


def test_a_pinned_library_that_asks_for_an_extra_keeps_its_version() -> None:
    evaluator = Evaluator("", packages=("transformers==4.1.0", "zod==1"))
    hints = []
    for asked in ("transformers[torch]", "transformers"):
        failed = Failed(replace(error(f"pip install {asked}"), type="ImportError"))
        hints.append(
            missing_imports.hint_on_import(failed.error, missing_imports.missing_of(failed, evaluator), evaluator)
        )
    assert hints == ["write transformers[torch]==4.1.0 in place of transformers==4.1.0 in `packages`", None]
