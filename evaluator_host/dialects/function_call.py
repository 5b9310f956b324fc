"""Describes a platform's call of an evaluator by expressions over the arguments of `evaluate`.

`migrate` rewrites evaluators of a dialect by it. In an expression `{inputs}`, `{outputs}` and `{trace}` are the names
of the new parameters, `{key}` is the name of the ground truth, as a literal, and `{truth}` in JavaScript reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TRUTH: Final = "{inputs}.get({key})"
AS_OBJECT: Final = '{outputs} if isinstance({outputs}, dict) else {{"output": {outputs}}}'
TRUTH_AS_OBJECT: Final = (
    '{inputs}.get({key}) if isinstance({inputs}.get({key}), dict) else {{"output": {inputs}.get({key})}}'
)
AS_OBJECT_JS: Final = (
    "Object({outputs}) === {outputs} && !Array.isArray({outputs}) ? {outputs} : {{ output: {outputs} }}"
)
TRUTH_AS_OBJECT_JS: Final = "Object({truth}) === {truth} && !Array.isArray({truth}) ? {truth} : {{ output: {truth} }}"


@dataclass(frozen=True, slots=True)
class ResultFields:
    """Rules by which `migrate` rewrites a platform's result object after `return` to one that `evaluate` may return.

    Attributes:
      fields: New names of keys, `{"value": "score"}`. An empty new name removes the key, except from a dict that Python
        code returns; keys that are not in `fields` keep their names.
      makers: Functions and classes that make such an object from keyword arguments: `Feedback(value=1)`.
      list_key: Key of a list of results: `{"scores": [{…}]}` with one result is rewritten to that result.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    makers: tuple[str, ...] = ()
    list_key: str = ""


@dataclass(frozen=True, slots=True)
class ClassCall:
    """One way to call an object of a class in Python.

    Attributes:
      bases: Names of the classes that it extends, without their modules.
      methods: Names of the methods that score, the first that the class has is called; an async one is awaited.
      arguments: What a parameter of each name gets; other parameters are columns of the inputs, without a default.
      whole: The expressions of positional arguments, where the method takes one object instead of values by name.
      imports: Names that these expressions use, each with its module.
      result: What an adapter returns for `result`, the returned value, and `scorer`, the object.
    """

    bases: tuple[str, ...]
    methods: tuple[str, ...]
    arguments: Mapping[str, str] = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    imports: Mapping[str, str] = field(default_factory=dict)
    result: str = "result"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One way to call a function in Python.

    Attributes:
      arguments: What a parameter of each name gets.
      entries: Names of the function; empty for any name.
      by_position: Names of parameters are free; `arguments` are in the order in which they are passed.
      decorators: Decorators that only mark the function; they are removed.
      result: What an adapter returns for `result`, the function's value.
      returned: How returned objects become those of `evaluate`.
      of_class: How objects are called, where evaluators are classes too.
    """

    arguments: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[str, ...] = ()
    by_position: bool = False
    decorators: tuple[str, ...] = ()
    result: str = "result"
    returned: ResultFields = field(default_factory=ResultFields)
    of_class: ClassCall | None = None


@dataclass(frozen=True, slots=True)
class JavaScriptCall:
    """One way to call a function in JavaScript and TypeScript.

    Attributes:
      arguments: Of each argument the expression, or the expressions of its properties.
      entries: Names of the function; empty for any name.
      by_name: Parameters that are plain names get the properties of the first argument.
      result: What an adapter returns for `result`, the function's value.
      returned: How returned objects become those of `evaluate`.
      packages: The platform's packages; what the new code does not use of them is no longer imported.
      inline: Names of the arguments in code that is an expression, or a body with `return`, without a function.
    """

    arguments: tuple[str | Mapping[str, str], ...]
    entries: tuple[str, ...] = ()
    by_name: bool = False
    result: str = "result"
    returned: ResultFields = field(default_factory=ResultFields)
    packages: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
