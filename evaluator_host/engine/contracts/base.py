"""The host's part of dialects (ways in which evaluators are written): converts rows to calls, and values to scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Loaded, Note, Returned
from evaluator_host.types.warnings import WarningKind

PYTHON_ONLY: Final = frozenset({Language.PYTHON})

BindOne: TypeAlias = Callable[[Row, EvaluatorSettings], Binding]
"""A pure function that returns the arguments for one of the rows that are scored together."""

Bind: TypeAlias = Callable[[Row, EvaluatorSettings], Binding | EvaluationError]
"""A pure function that returns the body of a row's `call`, or an error if the code cannot be called with this row."""


class Interpret(Protocol):
    """A pure function that converts a returned value to a score or an error.

    The evaluator's threshold and range are applied afterwards.
    """

    def __call__(
        self, returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
    ) -> Scored | EvaluationError:
        """Convert the returned value to a score, or to an error."""
        ...


@dataclass(frozen=True, slots=True)
class Sdk:
    """A third-party package that a dialect's evaluators import.

    The host replaces it with small modules of its own, which have the same names: the light modules.

    Attributes:
      module: The module that evaluators import, with all modules below it.
      stand_in: The light modules that the host provides.
      real: The distributions of the package, and distributions that depend on it. An evaluator that pins one of these
        gets no light modules.
      lock: Lock file of packages that the light modules may need, below the Python runner's folder; empty for none.
      needed: Packages that the light modules always import.
      needed_by: Packages that the light modules import only if the evaluator's code contains a certain name; the names
        are the keys.
      also: Further top-level modules that the light modules replace; code that imports one of them gets the light
        modules.
      decorators: Decorators by which the host recognises code that uses the package without importing it.
      judges: Parts of the package that ask a model, and that the light modules lack.
    """

    module: str
    stand_in: StandIn
    real: frozenset[str]
    lock: str = ""
    needed: frozenset[str] = frozenset()
    needed_by: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way in which evaluators are written. Every field after `interpret` is optional.

    Attributes:
      contract: Name of the dialect in requests and results.
      bind: Converts a row to the arguments of a call.
      interpret: Converts a returned value to a score.
      bind_javascript: `bind` for JavaScript and TypeScript, where it differs.
      failed: Returns what the platform stores for a row that failed.
      failed_javascript: `failed` for JavaScript and TypeScript, where it differs.
      apply_threshold: Applies the evaluator's threshold to a result in the platform's way; by default it decides
        `passed` if the result has no verdict.
      positions: Meaning of each positional argument, if parameters may have any names. Misleading names get a warning.
      languages: Languages in which its evaluators may be written.
      unread: Fields of a row that `bind` passes on without reading them; in a large row they stay JSON text.
      takes: Further fields that the dialect uses, so that the workbench shows an input for each. They can be the
        settings `config`, `correct_answer_key` and `score_output`, and the fields `variables`, `criteria` and
        `messages` of a row.
      truth: Parameter names by which evaluators get the ground truth, even if a column has the same name.
        `example.outputs` means the key `outputs` of the parameter `example`.
      truth_or_column: Parameter names by which evaluators get the ground truth. If a row has none, they get the column
        of the same name.
      config_keys: Keys of `settings.config` that the dialect reads; None if evaluators may read any key, as evaluator
        classes do.
      warnings: Warnings of this dialect only, by code. The documentation of the dialect lists them. Scores with these
        warnings are still valid.
      native_row: Example of a row in the platform's format, for the field `variables` of a row; empty if there is none.
      asks_models: Whether its evaluators may request answers from models. The host then fetches the answers and calls
        the evaluator again for the row.
      numbers_rows: Whether its evaluators get the row's position among all rows.
      bind_one_of_many: Converts one of several rows that are scored together; None if the dialect cannot score rows
        together.
      sdk: The package that its evaluators import; None when they need none.
      name_in_config: Returns the evaluator's name from its configuration, or None.
      row_notes: Returns warnings about a row, based on the facts about the code.
    """

    contract: Contract
    bind: Bind
    interpret: Interpret
    bind_javascript: Bind | None = None
    failed: Callable[[EvaluationError], tuple[dict[str, Json], ...]] | None = None
    failed_javascript: Callable[[EvaluationError], tuple[dict[str, Json], ...]] | None = None
    apply_threshold: Callable[[Scored, float | None, Language], Scored] | None = None
    positions: tuple[str, ...] = ()
    languages: frozenset[Language] = frozenset(Language)
    unread: frozenset[str] = frozenset()
    takes: tuple[str, ...] = ()
    truth: tuple[str, ...] = ()
    truth_or_column: tuple[str, ...] = ()
    config_keys: frozenset[str] | None = None
    warnings: Mapping[str, WarningKind] = field(default_factory=dict)
    native_row: Mapping[str, Json] = field(default_factory=dict)
    asks_models: bool = False
    numbers_rows: bool = False
    bind_one_of_many: BindOne | None = None
    sdk: Sdk | None = None
    name_in_config: Callable[[Mapping[str, Json]], str | None] | None = None
    row_notes: Callable[[Evaluator, Loaded, Row], tuple[Note, ...]] | None = None

    def unread_keys(self, config: Mapping[str, Json]) -> list[str]:
        """Return the keys of a configuration that this dialect never reads."""
        if "config" not in self.takes:
            return list(config)
        return [] if self.config_keys is None else [key for key in config if key not in self.config_keys]

    def explain(self, note: Note) -> Note:
        """Return a note that the runner sent. If the note is a warning of this dialect, add the dialect's advice."""
        own = self.warnings.get(note.code)
        return note if own is None else replace(note, remedy=own.remedy)

    def bind_for(self, language: Language) -> Bind:
        """Return the function that converts rows to arguments for evaluators in this language."""
        return self.bind if language is Language.PYTHON else self.bind_javascript or self.bind

    def native_of_failure(self, error: EvaluationError, language: Language) -> tuple[dict[str, Json], ...]:
        """Return the objects that the platform stores for a failed row; empty if it stores nothing."""
        javascript = self.failed if language is Language.PYTHON else self.failed_javascript or self.failed
        return () if javascript is None else javascript(error)
