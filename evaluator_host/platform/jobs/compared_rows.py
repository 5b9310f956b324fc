"""Reads rows of two compared jobs: their ids, and what is worse in the later job."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

from evaluator_host.client import Client
from evaluator_host.engine.system.files import written_anew
from evaluator_host.platform.terminal.console import err, plain
from evaluator_host.platform.terminal.job_tables import said, why
from evaluator_host.types.bounds import difference
from evaluator_host.types.jobs import JobReport
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.names import counted, id_of
from evaluator_host.types.results import Change, Comparison

_ROWS_ASKED = 100  # maximum number of rows of a job in one request
_WORSE: Final = (
    *("row", "id", "evaluator", "before", "after", "change"),
    *("passed_before", "passed_after", "why", "outputs_before", "outputs"),
)


def write_worse(
    client: Client, jobs: tuple[JobReport, JobReport], compared: Sequence[Comparison], file: Path, *, by_place: bool
) -> None:
    """Write a file of the rows whose score fell, or that fail in the later job, worst first, with both outputs."""
    ids = jobs[0].id, jobs[1].id
    count = 0
    inputs: dict[str, None] = {}  # names of the inputs of all rows, in order
    with written_anew(file) as opened, TemporaryFile() as records:
        written: IO[bytes] = records if file.suffix == ".csv" else opened
        for one in compared:
            asked = client.jobs.changes(*ids, evaluator=one.before, better=False, by_place=by_place)
            changes = sorted(asked, key=_fall, reverse=True)
            for at in range(0, len(changes), _ROWS_ASKED):
                lines = _worse_lines(client, jobs, one, changes[at : at + _ROWS_ASKED])
                count += len(lines)
                written.writelines(encode_json(line) + b"\n" for line in lines)
                inputs.update((name, None) for line in lines for name in line["inputs"])
        if written is records:
            records.seek(0)
            _write_csv(opened, records, tuple(inputs))
    err.print(plain(f"wrote {counted(count, 'row')} to {file}"))


def _write_csv(file: IO[bytes], records: Iterable[bytes], inputs: Sequence[str]) -> None:
    """Write records, which are lines of JSON, as CSV with a column for each input."""
    from evaluator_host.platform.jobs.results.exports import csv_lines  # noqa: PLC0415 - few commands need it

    file.write(csv_lines([(*_WORSE, *(f"inputs.{name}" for name in inputs))]))
    for line in records:
        record = decode_json(line)
        cells = (*(record[name] for name in _WORSE), *(record["inputs"].get(name) for name in inputs))
        file.write(csv_lines([cells]))


def _fall(change: Change) -> float:
    """Return by how much a row's score fell; infinity if it has no score in one of the jobs."""
    return math.inf if change.before is None or change.after is None else difference(change.after, change.before)


def _worse_lines(
    client: Client, jobs: tuple[JobReport, JobReport], one: Comparison, changes: Sequence[Change]
) -> list[dict[str, Any]]:
    """Return a record for each changed row: the fields of `_WORSE`, and `inputs`, an object."""
    rows = [change.row for change in changes]
    earlier = {
        found.index: found for found in client.jobs.first_rows(jobs[0].id, _ROWS_ASKED, evaluator=one.before, row=rows)
    }
    later = {
        found.index: found for found in client.jobs.first_rows(jobs[1].id, _ROWS_ASKED, evaluator=one.after, row=rows)
    }
    lines: list[dict[str, Any]] = []
    for row, before, after in ((change.row, change.before, change.after) for change in changes):
        was, now = earlier[row], later[row]
        outputs_before, _ = said(was, jobs[0].mapping.get("outputs"))
        outputs, inputs = said(now, jobs[1].mapping.get("outputs"))
        change = None if before is None or after is None else difference(before, after)
        verdicts = was.result["passed"], now.result["passed"]
        scores = (before, after, change, *verdicts)
        cells = (row, id_of(now.row), one.after, *scores, why(now), outputs_before, outputs)
        lines.append({**dict(zip(_WORSE, cells, strict=True)), "inputs": inputs})
    return lines


def ids_of_rows(client: Client, job: str, evaluator: str, rows: Sequence[int]) -> dict[int, str]:
    """Return the ids of these rows of a job, keyed by row number. Rows without an id are left out."""
    asked = (rows[at : at + _ROWS_ASKED] for at in range(0, len(rows), _ROWS_ASKED))
    found = (client.jobs.first_rows(job, _ROWS_ASKED, evaluator=evaluator, row=some, brief=True) for some in asked)
    return {one.index: name for page in found for one in page if (name := id_of(one.row)) is not None}
