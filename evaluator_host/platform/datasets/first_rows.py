"""Checks the first rows of data before any row is scored.

Three mistakes make scores meaningless, so they are refused: a mapping of columns that do not exist, code that reads
outputs when no row has outputs, and a judge whose prompt reads columns that no row has.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from evaluator_host.engine.contracts.judge.prompt_columns import SHOWN, how_to_map, lacking, meant_by, quoted
from evaluator_host.engine.contracts.reads import OutputsRead
from evaluator_host.platform.datasets.mapping import NO_OUTPUTS, BadRow, Mapping, is_row, is_template, to_row
from evaluator_host.platform.datasets.rows import RowFile
from evaluator_host.platform.datasets.suggestion import FIRST_ROWS, MOST_COLUMNS, listed, nearest, output_column
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import Contract, Evaluator, Row
from evaluator_host.types.formats import Format
from evaluator_host.types.groups import value_in

_SHOWN_CHARS: Final = 80
_NAMED: Final = 20  # maximum number of missing columns that an error names

Check: TypeAlias = Callable[[Evaluator], Awaitable[CheckReport | None]]
"""Returns the report on loading an evaluator; None if it cannot be loaded now."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first records of a data set or a file, and the rows that a mapping makes from these records."""

    name: str  # name of the data set or the file
    columns: tuple[str, ...]  # the known columns of all records
    records: Sequence[dict[str, Any]]
    # rows made from the records, without fields from templates; records that cannot become rows are left out
    rows: Sequence[Row]
    mapping: Mapping
    names_in_templates: dict[str, list[str]]  # columns that each template needs
    for_command: bool = False  # whether the mapping comes from `--map`, not from JSON
    notes: Sequence[str] = ()  # notes on how the file was read
    complete: bool = True  # whether there are no further records

    @property
    def has(self) -> str:
        """Return a phrase that lists the columns: `support has id, question and 3 more`."""
        return f"{self.name} has {listed(self.columns)}"

    def require_column(self, field: str, name: str) -> None:
        """Check that a column (or a dotted path) exists.

        Nothing is checked if the data may have more columns than are known.

        Raises:
          InvalidRequest: none of the rows has the column; the error names `field`.
        """
        unknown = len(self.columns) < MOST_COLUMNS and not {name, _root(name)} & {*self.columns}
        if self.columns and unknown and all(value_in(record, name) is None for record in self.records):
            problem = self._unknown(field, name)
            raise InvalidRequest(problem.message, problems=(problem,))

    def require_columns(self) -> None:
        """Check that all columns of the mapping exist.

        Nothing is checked if the data may have more columns than are known.

        Raises:
          InvalidRequest: a column of the mapping is neither in the data set nor in any of the rows.
        """
        if len(self.columns) >= MOST_COLUMNS:
            return
        known = {*self.columns}
        unknown = [
            (f"mapping.{field}", name)
            for field, source in self.mapping.sources
            for name in self._names_in(field, source)
            if name not in known and _root(name) not in known
        ]
        if unknown and known:
            # only the first errors suggest a similar column, because finding such a column takes milliseconds
            problems = [self._unknown(self._field(field), name) for field, name in unknown[:_NAMED]]
            told = [one.message for one in problems]
            told += [f"and {len(unknown) - _NAMED} more columns are missing"] if len(unknown) > _NAMED else []
            raise InvalidRequest("; ".join(told), problems=tuple(problems))

    def _names_in(self, field: str, source: str) -> Iterable[str]:
        if is_template(source):
            return self.names_in_templates.get(source, ())
        return () if (field, source) == NO_OUTPUTS else (source,)

    def _unknown(self, field: str, name: str) -> Problem:
        meant = nearest(name, self.columns) or nearest(_root(name), self.columns) or self._inside(name)
        message = f"{self.name} has no column {name[:_SHOWN_CHARS]}"
        message += f"; did you mean {meant}?" if meant is not None else ""
        return Problem(field, message, self.has)

    def _inside(self, name: str) -> str | None:
        """Return the path of a value with this name inside a column, such as `inputs.gold`, or None."""
        return next(
            (
                f"{column}.{name}"
                for record in self.records
                for column, value in record.items()
                if isinstance(value, dict) and name in value
            ),
            None,
        )

    def _field(self, field: str) -> str:
        return "--map" if self.for_command else field

    @property
    def without_outputs(self) -> bool:
        """Return whether all rows lack outputs, although the mapping does not say `outputs=none`."""
        if not self.rows or self.mapping.without_outputs or any(row.has_output for row in self.rows):
            return False
        return all(field != "outputs" for field, _ in self.mapping.templates)

    async def require_outputs(self, evaluators: Iterable[tuple[str, Evaluator]], check: Check) -> None:
        """Check that the rows have outputs if an evaluator reads outputs.

        `evaluators` are pairs of a name, for the error message, and an evaluator.

        Evaluators are loaded only if the rows have no outputs.

        Raises:
          InvalidRequest: an evaluator reads outputs, and none of the rows has outputs.
        """
        if not self.without_outputs:
            return
        for name, evaluator in evaluators:
            report = await check(evaluator)
            if report is not None and lack_outputs(self.rows, report):
                raise await asyncio.to_thread(self.no_outputs, name, report)

    async def require_inputs(
        self, evaluators: Iterable[tuple[str, Evaluator]], check: Check, *, generated: bool = False
    ) -> None:
        """Check that the rows have the columns that prompts of judges read.

        Nothing is refused if later rows, which were not read, may have the column.

        `evaluators` are pairs of a name, for the error message, and an evaluator. `generated` says whether a
        model writes the outputs.

        Raises:
          InvalidRequest: the prompt of a judge reads a column that none of the rows has.
        """
        if not self.rows or len(self.columns) >= MOST_COLUMNS:
            return
        for name, evaluator in evaluators:
            report = await check(evaluator) if evaluator.contract is Contract.JUDGE else None
            if report is not None and (names := await asyncio.to_thread(self._lacking, report)):
                raise await asyncio.to_thread(self._no_inputs, name, names, report, generated=generated)

    def _lacking(self, report: CheckReport) -> list[str]:
        rendered = {field for field, _ in self.mapping.templates}
        needed = () if "inputs" in rendered else report.reads.inputs
        names = [name for name in lacking(needed, self.rows) if f"inputs.{name}" not in rendered]
        return names if self.complete else self._in_no_record(names)

    def _in_no_record(self, names: list[str]) -> list[str]:
        """Return those of the names that cannot be inputs of any record, not even of records that were not read."""
        fields = {*self.columns, *(field for field, _ in self.mapping.sources)}
        # fields with nested objects, whose keys are known only for the first records
        nested = fields & {"inputs", "variables"}
        known = {*self.columns}
        return [] if nested else [name for name in names if name not in known]

    def _no_inputs(self, judge: str, names: Sequence[str], report: CheckReport, *, generated: bool) -> InvalidRequest:
        """Return the error for a judge that reads inputs which no row has.

        The error's hint is a mapping that would work.
        """
        within = "inputs." if any(map(is_row, self.records)) else ""
        columns = dict.fromkeys(name for row in self.rows for name in row.inputs) if within else self.columns
        sources = dict(self.mapping.sources)
        output = None if generated or within else output_column(self.columns, self.records)
        if report.reads.outputs and output not in (None, "outputs", "output"):
            sources = {"outputs": str(output), **sources}
        free = [one for one in columns if one != sources.get("outputs")]
        meant = {f"inputs.{name}": meant_by(name, free, report.reads.inputs) for name in names[:SHOWN]}
        sources |= {field: source if source == "COLUMN" else within + source for field, source in meant.items()}
        message = f"the prompt of {judge} reads {quoted(names)}, which no row of {self.name} has"
        found = [f"{field}={sources[field]}" for field, source in meant.items() if source != "COLUMN"]
        message += f"; did you mean {' and '.join(found)}?" if found else f"; {self.has}"
        problem = Problem(self._field(f"mapping.{next(iter(meant))}"), message, f"give {how_to_map(sources)}")
        return InvalidRequest(message, problems=(problem,))

    def no_outputs(self, name: str, report: CheckReport | None = None) -> InvalidRequest:
        """Return the error for an evaluator that reads outputs (see its `report`) when no row has outputs."""
        if (empty := self._output_column()) is not None:
            return self._is_empty(empty, name)
        read = () if report is None else report.reads.outputs
        taken = () if report is None else (one for one in report.parameters if one not in read)
        output = output_column(self.columns, self.records, read=read, taken=taken)
        message = f"no column is mapped to outputs; {self.has}"
        if self.for_command:
            message += f"; did you mean --map outputs={output}?" if output else "; add --map outputs=COLUMN"
            hint = "or, if the rows have no outputs, add --map outputs=none"
        else:
            message += f"; did you mean outputs={output}?" if output else ""
            shown = output or "COLUMN"
            hint = (
                f'map a column, "mapping": {{"outputs": "{shown}"}}, or write "none" in its place if the rows '
                "have no outputs"
            )
        return InvalidRequest(
            message, problems=(Problem(self._field("mapping.outputs"), f"{name} reads outputs", hint),)
        )

    def _output_column(self) -> str | None:
        mapped = [source for field, source in self.mapping.sources if field == "outputs"]
        return next((one for one in mapped or ("outputs", "output") if one in self.columns), None)

    def _is_empty(self, column: str, name: str) -> InvalidRequest:
        count = len(self.records)
        where = "its row" if count == 1 else f"its first {count} rows" if count == FIRST_ROWS else f"all {count} rows"
        message = f"the column {column} of {self.name} is empty in {where}"
        hint = "; ".join([*self.notes, "map another column, or write outputs=none if the rows have no outputs"])
        field = self._field("mapping.outputs")
        return InvalidRequest(message, problems=(Problem(field, f"{name} reads outputs", hint),))


def lack_outputs(rows: Iterable[Row], report: CheckReport) -> bool:
    """Return whether an evaluator reads outputs (see its `report`) and none of the rows has outputs."""
    if report.contract is None:
        return False
    return OutputsRead(Contract(report.contract), report.reads.outputs).lack(rows)


def first_rows_of_file(
    path: Path, mapping: Mapping, *, max_row_bytes: int, format_: Format | None = None
) -> FirstRows | None:
    """Return the first rows of the user's own file; None for a file that can be read only once.

    Raises:
      InvalidRequest: the file cannot be read, or has a different format than its suffix says.
    """
    if not path.is_file():
        return None
    notes: list[str] = []
    unmapped = RowFile(
        path,
        Mapping(),
        max_row_bytes=max_row_bytes,
        limit=FIRST_ROWS,
        report=lambda _line, _fault: None,
        format_=format_,
        note=notes.append,
    )
    records = [one.record for one in unmapped]
    names: dict[str, list[str]] = {}
    if mapping.templates:
        from evaluator_host.platform.datasets.rendering import names_in_templates  # noqa: PLC0415 - Jinja, which few need

        names = names_in_templates([template for _, template in mapping.templates])
    complete = len(records) < FIRST_ROWS
    return first_rows(path.name, records, mapping, names, for_command=True, notes=notes, complete=complete)


def first_rows(
    name: str,
    records: Sequence[Any],
    mapping: Mapping,
    names: dict[str, list[str]],  # the result of `names_in_templates`
    *,
    columns: Iterable[str] = (),  # further known columns, besides those of the records
    for_command: bool = False,
    notes: Sequence[str] = (),
    complete: bool = True,  # whether there are no further records
) -> FirstRows:
    """Return a `FirstRows`: the first records of data, and the rows that the mapping makes from them."""
    objects = [one for one in records if isinstance(one, dict)]
    known = dict.fromkeys(islice(columns, MOST_COLUMNS))
    for one in objects:
        known |= dict.fromkeys(islice(one, MOST_COLUMNS - len(known)))
    plain = mapping.without_templates()
    rows = [row for one in objects if (row := _made(one, plain)) is not None]
    return FirstRows(name, tuple(known), objects, rows, mapping, names, for_command, notes, complete)


def _made(record: dict[str, Any], mapping: Mapping) -> Row | None:
    try:
        return to_row(record, mapping)
    except BadRow:
        return None


def _root(name: str) -> str:
    return name.split(".", 1)[0]
