"""Reads the facts by which an evaluator's dialect is recognised.

It reads them from the syntax tree of the code, before the code runs.

The facts are names of functions and classes at module level, parameters, and decorators, bases and annotations as
dotted names, resolved through the code's own imports.
"""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ONLY_AST = 0x400
_BLOCKS = ("body", "orelse", "handlers", "finalbody")
_FUNCTIONS = ("FunctionDef", "AsyncFunctionDef")


def _is_score(node: Any) -> bool:
    if type(node).__name__ == "Dict":
        return any(getattr(key, "value", None) == "score" for key in node.keys)
    called = getattr(node, "func", None)
    name = getattr(called, "id", "") or getattr(called, "attr", "")
    is_made = name == "dict" or name[:1].isupper()
    return name in ("Score", "ScoreResult") or (is_made and any(one.arg == "score" for one in node.keywords))


class Function:
    """A function at module level.

    Attributes:
      line: Its line, from 1.
      parameters: Names of all parameters: those that may be given by position, then the keyword-only ones.
      positional: How many parameters may be given by position.
      positional_only: How many parameters, from the first, can only be given by position.
      required: Names of the parameters without default.
      variadic: Whether it has `*args` or `**kwargs`.
      annotations: The parameters' annotations as dotted names; an empty string for a parameter without annotation.
      decorators: For each decorator, the dotted names that it may have.
    """

    __slots__ = (
        "annotations", "decorators", "line", "name", "node", "parameters", "positional", "positional_only",
        "required", "variadic",
    )  # fmt: skip

    def __init__(self, name: str, node: Any, outline: Outline) -> None:
        arguments = node.args
        by_position = [*arguments.posonlyargs, *arguments.args]
        every = [*by_position, *arguments.kwonlyargs]
        with_default = {one.arg for one in by_position[len(by_position) - len(arguments.defaults) :]}
        if not arguments.defaults:
            with_default = set()
        keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        with_default |= {one.arg for one, default in keyword if default is not None}
        self.name = name
        self.line: int = node.lineno
        self.parameters = [one.arg for one in every]
        self.positional = len(by_position)
        self.positional_only = len(arguments.posonlyargs)
        self.required = [one.arg for one in every if one.arg not in with_default]
        self.variadic = arguments.vararg is not None or arguments.kwarg is not None
        self.annotations = [next(iter(outline.dotted(one.annotation)), "") for one in every]
        self.decorators = [outline.dotted(one) for one in getattr(node, "decorator_list", ())]
        self.node = node

    @property
    def is_async(self) -> bool:
        """Return whether this is a coroutine function."""
        return type(self.node).__name__ == "AsyncFunctionDef"

    @property
    def is_program(self) -> bool:
        """Return whether this is a program's `main`, with the command line as its argument: `main(argv=None)`."""
        takes = ("argv",) if self.required else ("argv", "args", "arguments")
        return self.name == "main" and len(self.parameters) == 1 and self.parameters[0] in takes

    def annotation_of(self, parameter: str) -> str:
        """Return a parameter's annotation as a dotted name; an empty string if it has none."""
        return str(dict(zip(self.parameters, self.annotations, strict=True)).get(parameter, ""))

    @property
    def unread(self) -> set[str]:
        """Return the parameters that the function certainly never reads; none if a decorator may read parameters."""
        if self.decorators:
            return set()
        read = names_loaded(self.node)
        return set() if read & {"eval", "exec", "locals", "vars"} else set(self.parameters) - read

    @property
    def gives_list(self) -> bool:
        """Return whether the function returns only lists, according to its annotation or its `return` statements."""
        return self._gives({"list", "List"}, {"List", "ListComp"}) and not self._gives_scores()

    def _gives_scores(self) -> bool:
        """Return whether the function returns a list of a row's scores: `[{"name": …, "score": …}]`, `[Score(…)]`."""
        values = [one.value for one in walk(self.node) if type(one).__name__ == "Return"]
        items = [one for value in values for one in (*getattr(value, "elts", ()), getattr(value, "elt", None))]
        return any(_is_score(one) for one in items)

    @property
    def gives_function(self) -> bool:
        """Return whether the function returns only functions that it defines itself."""
        body = getattr(self.node, "body", None)
        own = [one for part in body for one in walk(part)] if isinstance(body, list) else []
        made = {one.name for one in own if type(one).__name__ in _FUNCTIONS}
        values = [one.value for one in body or () if type(one).__name__ == "Return"] if own else [body]
        return bool(values) and all(
            type(one).__name__ == "Lambda" or getattr(one, "id", None) in made for one in values
        )

    @property
    def gives_summary(self) -> bool:
        """Return whether the function returns only dicts or tuples, by its annotation or its `return` statements."""
        return self._gives({"dict", "Dict", "tuple", "Tuple"}, {"Dict", "Tuple"})

    @property
    def gives_tuple(self) -> bool:
        """Return whether the function returns only tuples, by its annotation or its `return` statements."""
        return self._gives({"tuple", "Tuple"}, {"Tuple"})

    def _gives(self, types: set[str], nodes: set[str]) -> bool:
        returns = getattr(self.node, "returns", None)
        told = getattr(getattr(returns, "value", returns), "id", "")
        if told in types:
            return True
        body = getattr(self.node, "body", None)
        values = [one.value for one in walk(self.node) if type(one).__name__ == "Return"] if type(body) is list else []
        return bool(values) and all(type(one).__name__ in nodes for one in values)

    def reads(self, attribute: str) -> bool:
        """Return whether the function's body reads this attribute of any object."""
        return any(type(one).__name__ == "Attribute" and one.attr == attribute for one in walk(self.node))

    def constants(self) -> Iterator[str]:
        """Yield the string constants in the function's body."""
        for one in walk(self.node):
            if type(one).__name__ == "Constant" and isinstance(one.value, str):
                yield one.value


class Outline:
    """The definitions and imports of a module; both are empty for code that does not parse.

    Attributes:
      functions: Functions by name; a name that is defined twice has its last definition.
      classes: The dotted names of each class's bases, by the name of the class.
      modules: All imported modules, as written.
      parsed: Whether the code parses.
      is_expression: Whether the code is a single expression.
      names: Names that the expression uses, if the code is a single expression.
      returns: Whether there is a `return` outside functions.
      binds: Names that statements at module level assign or define.
      binds_in_order: These names in the order in which they are bound.

    Args:
      code: The source.
      inside: Functions whose bodies are read as if they were at module level, in place of the module's own statements.
    """

    def __init__(self, code: str = "", inside: list[str] | None = None) -> None:
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, list[str]] = {}
        self.modules: list[str] = []
        self.parsed = self.is_expression = self.returns = False
        self.names: set[str] = set()
        self.binds: set[str] = set()
        self.binds_in_order: dict[str, None] = {}
        self.tree: Any = None
        self._imported: dict[str, str] = {}
        self._stars: list[str] = []
        try:
            tree: Any = compile(code, "<outline>", "exec", _ONLY_AST, dont_inherit=True)
            statements = list(statements_of(tree))
            for node in statements:
                self._read_import(node)
            if inside is not None:
                statements = [one for node in statements for one in _body_of(node, inside)]
                for node in statements:
                    self._read_import(node)
            for node in statements:
                self._read_definition(node)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        self.parsed = True
        self.tree = tree
        self.is_expression = len(tree.body) == 1 and type(tree.body[0]).__name__ == "Expr"
        self.returns = any(type(node).__name__ == "Return" for node in statements)
        if self.is_expression or self.returns:
            self.names = {one.id for one in walk(tree) if type(one).__name__ == "Name"}

    def dotted(self, node: Any) -> list[str]:
        """Return the dotted names that an expression may mean.

        A name has several dotted names if it may come from more than one `import *`.
        """
        kind = type(node).__name__
        if kind == "Constant" and isinstance(node.value, str):
            return [self._imported.get(node.value, node.value)]
        if kind == "Attribute":
            return [f"{above}.{node.attr}" for above in self.dotted(node.value)]
        if kind in {"Call", "Subscript"}:
            return self.dotted(node.func if kind == "Call" else node.value)
        if kind != "Name":
            return []
        known = self._imported.get(node.id)
        return [known] if known else [node.id, *[f"{module}.{node.id}" for module in self._stars]]

    def subclass_of(self, package: str, *names: str) -> str | None:
        """Return the name of the first class with one of these base classes from the package; None if there is none."""
        return next((name for name, bases in self.classes.items() if _any_from(bases, package, names)), None)

    def decorated_by(self, package: str, *names: str, of: str | None = None) -> Function | None:
        """Return the first function with one of these decorators from the package.

        Args:
          package: The package; its submodules count, too.
          names: Names of decorators.
          of: The function to look at; None for all.
        """
        found = [one for name, one in self.functions.items() if of in {None, name}]
        return next((one for one in found if any(_any_from(way, package, names) for way in one.decorators)), None)

    def without(self, names: set[str]) -> Outline:
        """Return the outline of the same code without the functions that have these names."""
        other = Outline.__new__(Outline)
        other.__dict__.update(self.__dict__)
        other.functions = {name: one for name, one in self.functions.items() if name not in names}
        return other

    def imports(self, package: str) -> bool:
        """Return whether the code imports a package, or a module below it."""
        return any(one == package or one.startswith(f"{package}.") for one in self.modules)

    @property
    def has_own_entry(self) -> bool:
        """Return whether an entry for the host's own contracts is in the code: `evaluate` or `main` with parameters."""
        found = [self.functions[name] for name in ("evaluate", "main") if name in self.functions]
        return any(one.parameters and not one.is_program for one in found)

    @property
    def has_evaluate(self) -> bool:
        """Return whether the code has `evaluate(inputs, outputs, trace)`: exactly these names, and no decorators."""
        found = self.functions.get("evaluate")
        return found is not None and not found.decorators and list(found.parameters) == ["inputs", "outputs", "trace"]

    def _read_import(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "Import":
            for one in node.names:
                self.modules.append(one.name)
                self._imported[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif kind == "ImportFrom" and not node.level and node.module:
            for one in node.names:
                self.modules.append(f"{node.module}.{one.name}")
                if one.name == "*":
                    self._stars.append(node.module)
                else:
                    self._imported[one.asname or one.name] = f"{node.module}.{one.name}"

    def _read_definition(self, node: Any) -> None:
        kind = type(node).__name__
        if kind in _FUNCTIONS:
            self.functions[node.name] = Function(node.name, node, self)
            self.binds_in_order[node.name] = None
        elif kind == "ClassDef":
            self.classes[node.name] = [name for base in node.bases for name in self.dotted(base)]
            self.binds_in_order[node.name] = None
        elif kind in {"Assign", "AnnAssign"}:
            targets = bound_by(node)
            self.binds.update(targets)
            self.binds_in_order.update(dict.fromkeys(targets))
            if kind == "Assign" and type(node.value).__name__ == "Lambda":
                for target in targets:
                    self.functions[target] = Function(target, node.value, self)
        self.binds.update((*self.functions, *self.classes))


def definitions_in(outline: Outline, *, with_required: bool = False) -> dict[str, list[str]]:
    """Map each function that defines functions or classes and returns a value to the names of these definitions.

    Decorated functions are left out; without `with_required`, functions with required parameters are left out, too.
    """
    found = {}
    for function in outline.functions.values():
        body = getattr(function.node, "body", None)
        if (function.required and not with_required) or function.decorators or not isinstance(body, list):
            continue
        names = [one.name for one in body if type(one).__name__ in {*_FUNCTIONS, "ClassDef"}]
        if names and any(type(one).__name__ == "Return" and one.value is not None for one in body):
            found[function.name] = names
    return found


def returned_by_way_of(outline: Outline, makers: set[str]) -> dict[str, set[str]]:
    """Map each function that needs no arguments to the functions in `makers` that its `return` statements use."""
    found = {}
    for function in outline.functions.values():
        if function.required or function.decorators or function.name in makers:
            continue
        returns = [one for one in walk(function.node) if type(one).__name__ == "Return" and one.value is not None]
        if used := makers & {name for one in returns for name in names_loaded(one)}:
            found[function.name] = used
    return found


def names_used_by_others(outline: Outline) -> set[str]:
    """Return the names that module-level functions and classes use, except uses of their own names.

    Uses in functions that only run other functions do not count: `main`, tests, and functions without parameters.
    """
    found: set[str] = set()
    for node in statements_of(outline.tree):
        if type(node).__name__ in {*_FUNCTIONS, "ClassDef"} and not _runs_others(node, outline):
            found.update(name for name in names_loaded(node) if name != node.name)
    return found


def _runs_others(node: Any, outline: Outline) -> bool:
    function = outline.functions.get(node.name)
    return function is not None and (
        node.name == "main" or node.name.startswith("test_") or not (function.parameters or function.variadic)
    )


def names_loaded(node: Any) -> set[str]:
    """Return the names that a node reads."""
    return {
        part.id for part in walk(node) if type(getattr(part, "ctx", None)).__name__ == "Load" and hasattr(part, "id")
    }


def bound_by(node: Any) -> list[str]:
    """Return the names that a statement binds: the name of a function or class, or the targets of an assignment."""
    if type(node).__name__ in {*_FUNCTIONS, "ClassDef"}:
        return [node.name]
    if type(node).__name__ not in {"Assign", "AnnAssign"}:
        return []
    targets = getattr(node, "targets", None) or [node.target]
    return [one.id for one in targets if type(one).__name__ == "Name"]


def texts_in(outline: Outline) -> list[tuple[int, str]]:
    """Return the line and value of each string constant in the code, except docstrings."""
    docstrings = [getattr(one, "body", None) for one in walk(outline.tree)]
    heads = [one[0].value for one in docstrings if isinstance(one, list) and one and type(one[0]).__name__ == "Expr"]
    return [
        (one.lineno, one.value)
        for one in walk(outline.tree)
        if type(one).__name__ == "Constant" and isinstance(one.value, str) and one not in heads
    ]


def calls_in(outline: Outline, package: str, names: tuple[str, ...]) -> list[Any]:
    """Return all calls to the package's functions with these names."""
    calls = [one for one in walk(outline.tree) if type(one).__name__ == "Call"]
    return [one for one in calls if _any_from(outline.dotted(one.func), package, names)]


def _body_of(node: Any, wanted: list[str]) -> Iterator[Any]:
    if type(node).__name__ in _FUNCTIONS and node.name in wanted:
        yield from statements_of(node)


def _any_from(names: list[str], package: str, wanted: tuple[str, ...]) -> bool:
    return any(name.startswith(f"{package}.") and name.rpartition(".")[2] in wanted for name in names)


def statements_of(tree: Any) -> Iterator[Any]:
    """Yield the module-level statements in order, including those in branches and blocks."""
    left = list(reversed(tree.body))
    while left:
        node = left.pop()
        yield node
        if type(node).__name__ not in {*_FUNCTIONS, "ClassDef"}:
            for part in reversed(_BLOCKS):
                left.extend(reversed(getattr(node, part, None) or ()))


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all nodes in it."""
    left = [node]
    while left:
        one = left.pop()
        yield one
        for name in one._fields:
            value = getattr(one, name, None)
            left.extend(part for part in (value if isinstance(value, list) else [value]) if hasattr(part, "_fields"))
