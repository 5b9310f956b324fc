"""Makes the evaluator, and all that it can import, importable in Python processes that user code starts.

The variables of `environment` make a child import `children/sitecustomize.py`, which extends the child's import path.
The child of a process pool (spawn and forkserver of `multiprocessing`, joblib) unpickles functions of `evaluator`, so
the child loads the evaluator again from a file that holds the evaluator's load frame. Only processes that have imported
a module in `_POOLS` write this file.

A subinterpreter begins with only the standard library, because its Python was started with `-I -S`. Before anything
else, it also runs `sitecustomize.py`.
"""

from __future__ import annotations

import os
import sys

from evaluator_runner import jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.abc import Loader
    from types import ModuleType
    from typing import Any

    from evaluator_runner.options import Options
    from evaluator_runner.zygote import Job
else:
    Loader = object  # importlib.abc takes long to import

FILE = ".evaluator"
_SUBINTERPRETERS = ("_interpreters", "_xxsubinterpreters")  # the second name is the one before Python 3.13
_POOLS = frozenset(
    ("multiprocessing.spawn", "joblib.externals.loky.backend.spawn", "loky.backend.spawn", *_SUBINTERPRETERS)
)
_UNUSED = frozenset(("isolated", "no_site", "no_user_site", "ignore_environment", "safe_path"))
_HEADER = ("contract", "entry", "policy")
_RUNNER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CHILDREN = f"{_RUNNER}/children"
_unlink = os.unlink
_listings: list[Callable[[], list[Any]]] = []  # functions that list the interpreters of this process


class _Flags:
    """The flags of a Python process that is started without options. Children are started in this way."""

    def __init__(self) -> None:
        for name in dir(sys.flags):
            if not name.startswith(("_", "n_")) and name not in {"count", "index"}:
                setattr(self, name, 0 if name in _UNUSED else getattr(sys.flags, name))

    def __repr__(self) -> str:
        """Return the `repr` of `sys.flags`, which contains no address of an object."""
        return f"sys.flags({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def environment(options: Options, home: str) -> dict[str, str]:
    """Return the environment variables that tell a child where to find its imports."""
    places = [place for place in (options.packages, options.sdk) if place is not None]
    return {
        "PYTHONPATH": _CHILDREN,
        "EVALUATOR_IMPORTS": os.pathsep.join(places),
        "EVALUATOR_CODE": f"{home}/{FILE}",
    }


def start_plainly() -> None:
    """Let `multiprocessing` and `subprocess` start Python without the runner's own options `-I` and `-S`."""
    sys.flags = _Flags()  # type: ignore[assignment]


def watch(job: Job) -> None:
    """Prepare this process for user code that starts children while it loads: processes in a pool, or interpreters."""
    for name in _SUBINTERPRETERS:
        if name in sys.modules:
            _furnish_subinterpreters(sys.modules[name])
    sys.meta_path.insert(0, _Watch(job))
    if not _POOLS.isdisjoint(sys.modules):  # a package that was imported in advance may have imported a process pool
        _write(job)


def take_pools(job: Job) -> bool:
    """Return whether loading imported a process pool. Remove the evaluator's file, because each row writes its own."""
    try:
        _unlink(f"{job.home}/{FILE}")
    except OSError:
        pass
    return not _POOLS.isdisjoint(sys.modules)


def interpreters_left() -> bool:
    """Return whether subinterpreters are left after loading; a forked process cannot use them."""
    return any(len(listed()) > 1 for listed in _listings)


def content(header: dict[str, Any], body: bytes) -> bytes:
    """Return the content of the file from which child processes load the evaluator.

    The content is the load frame, with only those fields of the header that are in `_HEADER`. The file has no secrets,
    because children inherit these as environment variables.
    """
    head = jsontext.encode({name: header[name] for name in _HEADER}).encode()
    return len(head).to_bytes(4, "big") + head + body


def _write(job: Job) -> None:
    try:
        with open(f"{job.home}/{FILE}", "xb") as file:
            file.write(content(job.header, job.body))
    # the file is there already, or the disk is full; on a full disk, a child will report the missing module
    except OSError:
        pass


def _furnish_subinterpreters(module: ModuleType) -> None:
    """Let each subinterpreter that `module` creates import the same modules as a child process."""
    create, run = module.create, getattr(module, "exec", None) or module.run_string
    _listings.append(module.list_all)

    def furnished(*args: Any, **kwargs: Any) -> Any:
        made = create(*args, **kwargs)
        run(made, f"__import__('sys').path.insert(0, {_CHILDREN!r})\n__import__('sitecustomize')")
        return made

    module.create = furnished  # type: ignore[attr-defined]


class _Watch:
    """An import finder that notices imports of process pools, and returns specs only for modules of subinterpreters."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Write the evaluator's file if module `name` starts children; return a spec for modules of subinterpreters."""
        if name not in _POOLS:
            return None
        _write(self._job)
        if name not in _SUBINTERPRETERS:
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                spec.loader = _Subinterpreters(spec.loader)
                return spec
        return None


class _Subinterpreters(Loader):
    """Loads the standard library's module for subinterpreters."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; then let the subinterpreters that it creates import more than the standard library."""
        self._loader.exec_module(module)
        _furnish_subinterpreters(module)


class _Evaluator(Loader):
    """Finds and loads the module `evaluator` in a child."""

    def __init__(self, header: dict[str, Any], body: dict[str, Any]) -> None:
        self._header = header
        self._body = body

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        from _frozen_importlib import ModuleSpec

        return ModuleSpec(name, self) if name == "evaluator" else None

    def create_module(self, _spec: Any) -> None:
        """Return None, so that the interpreter creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the evaluator in this child in the same way as in the runner."""
        from evaluator_runner import program
        from evaluator_runner.options import Options

        try:
            program.load(self._body, self._header, options=Options([]))
        except program.LoadFailed as failed:
            raise ImportError(failed.error["message"], name="evaluator") from None
        sys.modules["evaluator"].__spec__ = module.__spec__


def install(path: str) -> None:
    """Let this child process import the evaluator in a file, and the evaluator's own modules."""
    from evaluator_runner import modules
    from evaluator_runner.tracebacks import FILENAME

    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:4], "big")
    header, body = jsontext.decode(data[4 : 4 + size].decode()), jsontext.decode(data[4 + size :].decode())
    modules.install(body, body.get("path") or FILENAME)
    sys.meta_path.append(_Evaluator(header, body))
