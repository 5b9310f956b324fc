"""Finds the package that a missing import probably needs: `cv2` is in opencv-python.

The name of a module is not the name of its package, and no index maps one to the other. The table of the `autopep723`
package does for many, a second table adds what evaluators import besides; any other module is taken for a package of
its own name.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Final, cast

from packaging.utils import canonicalize_name

from evaluator_host.model.evaluator import Language
from evaluator_host.packages.index import IndexSettings
from evaluator_host.packages.lock import Target
from evaluator_host.packages.suggest import newest_pins
from evaluator_host.packages.tools import installed_tools

_MORE: Final = {
    "attr": "attrs", "bert_score": "bert-score", "Bio": "biopython", "cairo": "pycairo", "community": "python-louvain",
    "Cryptodome": "pycryptodomex", "docx": "python-docx", "faiss": "faiss-cpu", "flair": "flair", "git": "gitpython",
    "google.cloud.bigquery": "google-cloud-bigquery", "google.cloud.storage": "google-cloud-storage",
    "google.generativeai": "google-generativeai", "google.genai": "google-genai", "google.protobuf": "protobuf",
    "googleapiclient": "google-api-python-client", "jose": "python-jose", "jsonpath_ng": "jsonpath-ng",
    "Levenshtein": "levenshtein", "lxml": "lxml", "magic": "python-magic", "mpl_toolkits": "matplotlib",
    "multipart": "python-multipart", "MySQLdb": "mysqlclient", "nacl": "pynacl", "OpenSSL": "pyopenssl",
    "pkg_resources": "setuptools", "pptx": "python-pptx", "psycopg": "psycopg", "pylab": "matplotlib",
    "pymysql": "pymysql", "pythoncom": "pywin32", "pywintypes": "pywin32", "rouge": "rouge",
    "ruamel.yaml": "ruamel-yaml", "sentence_transformers": "sentence-transformers", "slugify": "python-slugify",
    "snowballstemmer": "snowballstemmer", "socks": "pysocks", "spellchecker": "pyspellchecker",
    "telegram": "python-telegram-bot", "umap": "umap-learn", "websocket": "websocket-client", "wx": "wxpython",
    "z3": "z3-solver", "zmq": "pyzmq",
}  # fmt: skip
# Names that authors give to their own files far more often than they import the package of that name.
_OWN: Final = frozenset({
    "app", "common", "config", "conftest", "constants", "core", "evaluator", "evaluators", "helper", "helpers",
    "lib", "main", "model", "models", "module", "project", "schemas", "scripts", "settings", "shared", "src",
    "test", "tests", "tools", "types", "util", "utils",
})  # fmt: skip
_NPM_PACKAGE: Final = re.compile(r"(@[a-z0-9~-][\w.~-]*/[a-z0-9~-][\w.~-]*|[a-z0-9~-][\w.~-]*)(?:/.*)?", re.IGNORECASE)


def pin_for(module: str, language: Language) -> str | None:
    """Return the package that a module is probably in, without a version.

    Args:
      module: As imported: `cv2`, `google.cloud.storage`, `lodash/fp`, `@scope/name/sub`.
      language: Of the evaluator.

    Returns:
      The package's name; None for modules of the runtime itself, for relative imports, and for names that authors
      give to their own files far more often than packages have them.
    """
    return _distribution(module) if language is Language.PYTHON else _npm_package(module)


async def exact_pins_for(
    modules: Sequence[str], language: Language, *, target: Target, index: IndexSettings
) -> list[str | None]:
    """Return the package of each module, pinned to its newest version if the index answers, else its bare name."""
    names = [pin_for(module, language) for module in modules]
    wanted = list(dict.fromkeys(filter(None, names)))
    found = await newest_pins(wanted, language, target=target, index=index)
    return [found.get(name, name) if name else None for name in names]


@lru_cache(maxsize=1)
def _distributions() -> dict[str, str]:
    table = import_module("autopep723").IMPORT_TO_PACKAGE_MAP  # it has no types, and is needed by `check` alone
    return {**cast("Mapping[str, str]", table), **_MORE}


def _distribution(module: str) -> str | None:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    if parts[0] in sys.stdlib_module_names or parts[0] == "__main__":
        return None
    table = _distributions()
    for length in range(len(parts), 0, -1):
        if found := table.get(".".join(parts[:length])):
            return canonicalize_name(found)
    if parts[0].lower() in _OWN or parts[0].startswith("_") or not parts[0].isascii():
        return None
    return canonicalize_name(parts[0])


def _npm_package(specifier: str) -> str | None:
    found = _NPM_PACKAGE.fullmatch(specifier)
    if found is None or ":" in specifier:
        return None
    name = found[1]
    return None if name in installed_tools().node_builtins else name
