"""Warns about a row whose expected answer is empty, or is in a column that the dialect does not read."""

from evaluator_host.engine.contracts.native import truth_column
from evaluator_host.engine.contracts.reads import functions, remembered, truths_read
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.contracts.words import EXPECTED, meaning
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.outcome import Loaded, Note


def missing_truth(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    """Return a warning if the code reads the expected answer, but the row has it in a column of another name."""
    key, dialect = evaluator.settings.correct_answer_key, dialect_of(loaded.contract)
    names = (*dialect.truth, *dialect.truth_or_column)
    if not names or row.variables is not None or truth_column(row.inputs, evaluator.settings) is not None:
        return ()
    there = [name for name, value in row.inputs.items() if value is not None and meaning(name) == EXPECTED]
    if not there:
        return ()
    read = [name for name in names if _is_read(loaded, name)]
    given = any(_is_given(loaded, name, row) for name in (*read, *there))
    if not read or given or any(_is_tested(loaded, name) for name in read):
        return ()
    columns = ", ".join(f"`{name[:80]}`" for name in there[:5])
    message = f"the code reads `{read[0]}`, which is the column `{key}`, but the row has only {columns}"
    return (Note("missing_column", message, f"map the column: {key}={there[0][:80]}"),)


def empty_truth(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    """Return a warning if the expected answer is an empty string that the code uses without checking it."""
    given = row.inputs if row.variables is None else row.variables
    if loaded.contract in (Contract.EVALUATE, Contract.MAIN, Contract.JUDGE):
        names = read = truths_read(loaded, evaluator.language)
    else:
        dialect, column = dialect_of(loaded.contract), truth_column(row.inputs, evaluator.settings)
        names = () if column is None or row.variables is not None else (column,)
        read = tuple(one for one in (*dialect.truth, *dialect.truth_or_column) if names and _is_read(loaded, one))
    texts = [given[name] for name in names if name in given]
    if not read or not texts or any(text is not None and (not isinstance(text, str) or text.strip()) for text in texts):
        return ()
    if any(_is_tested(loaded, name) for name in read):
        return ()
    empty = ", ".join(f"`{name[:80]}`" for name in names if name in given)
    reader = reader_of(loaded)
    test = "{% if … %}" if reader == "prompt" else "if not …:" if evaluator.language is Language.PYTHON else "if (!…)"
    message = f"the {reader} reads the expected answer, but {empty} of the row is empty"
    return (
        Note(
            "empty_expected",
            message,
            f"fill it in, or leave the row out; if it may be empty, let the {reader} test it first with `{test}`",
        ),
    )


def reader_of(loaded: Loaded) -> str:
    """Return what reads the row, for messages: the code, or the prompt of a judge."""
    return "prompt" if loaded.contract is Contract.JUDGE else "code"


def reads_untested(loaded: Loaded, name: str) -> bool:
    """Return whether the code reads a value by this name and never checks that the value exists."""
    return _is_read(loaded, name) and not _is_tested(loaded, name)


@remembered
def _is_read(loaded: Loaded, name: str) -> bool:
    of, _, key = name.rpartition(".")
    parameters = [one for function in functions(loaded) for one in function.parameters]
    if of:
        return any(one.name == of and key in one.keys for one in parameters)
    if any(one.read and one.name == name for one in parameters):
        return True
    return any(one.key == name and one.of is not None and not _has_columns(one.of) for one in loaded.reads)


def _is_given(loaded: Loaded, name: str, row: Row) -> bool:
    if all(row.inputs.get(one) is None for one in (name, name.removesuffix("s"))):
        return False
    if any(one.key == name and one.of is not None and _has_columns(one.of) for one in loaded.reads):
        return True
    dialect = dialect_of(loaded.contract)
    return bool(dialect.truth_or_column) and name not in dialect.truth and _is_read(loaded, name)


@remembered
def _is_tested(loaded: Loaded, name: str) -> bool:
    """Return whether the code tests that the value, or the object that contains the value, exists."""
    of, _, key = name.rpartition(".")
    return any(one.tested and one.key == key and (not of or one.of == of) for one in loaded.reads)


def _has_columns(name: str) -> bool:
    """Return whether a parameter with this name gets an object with the row's columns."""
    return meaning(name) == "inputs" or name == "metadata" or name.endswith("variables")
