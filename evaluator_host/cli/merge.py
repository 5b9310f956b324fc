"""`merge`: join the results of all shards of a run into one file and one summary."""

from array import array
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer
from pydantic import Field, ValidationError

from evaluator_host.engine.contracts.table import has_corpus_scores
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.files import open_file, written_anew
from evaluator_host.platform.datasets.rows import Shard
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.console import err, out, print_json
from evaluator_host.platform.terminal.gates import FailUnderOption
from evaluator_host.platform.terminal.summary import Summary
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import Failures
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.outcome import EvaluationResult

_NONE: Final = (1 << 64) - 1
_read_result: Final = Adapter(EvaluationResult).read


@dataclass(frozen=True, slots=True)
class _Closing:
    """The last line of the results of one shard, which is a part of a run; see `Shard.closing_line`."""

    shard: str
    rows: Annotated[int, Field(ge=0, le=1 << 53)]
    bad_lines: int
    failures: str | None = None


_read_closing: Final = Adapter(_Closing).read


@dataclass(frozen=True, slots=True)
class _Part:
    """The results of one shard: its closing line, and where the line of each row begins."""

    path: Path
    shard: Shard
    rows: int
    bad_lines: int
    places: dict[int, int]
    failures_are_zero: bool  # whether the shard comes from a job that counts failed rows as 0


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="The result files of all shards, written by `run --shard --out` or `jobs download`."
        ),
    ],
    *,
    target: Annotated[
        Path | None, typer.Option("--out", help="Write the results of all rows to this file, in the order of the rows.")
    ] = None,
    fail_under: FailUnderOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 2 if a line of the data is not a valid row.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Join the results of all shards of a run; results and exit code are the same as for one run over all rows."""
    parts = [_read_part(path) for path in files]
    _require_all(parts)
    summary = Summary(failures_are_zero=parts[0].failures_are_zero)
    together = False
    digests: dict[str, int] = {}
    with ExitStack() as stack:
        merged = stack.enter_context(written_anew(target)) if target is not None else None
        opened = {part.shard.number: stack.enter_context(open_file(part.path)) for part in parts}
        for entry, line in _lines(parts, opened):
            result = _result_of(entry, parts)
            _require_same_evaluator(digests, result.evaluator.digest, parts, entry["index"])
            summary.add(result, row=entry["index"], line=entry.get("line", entry["index"] + 1))
            together = together or has_corpus_scores(result.evaluator.contract)
            if merged is not None:
                merged.write(line)
    bad_lines = max(part.bad_lines for part in parts)
    if as_json:
        print_json(summary.to_json(bad_lines=bad_lines, seconds=0))
    else:
        out.print(summary.to_table(bad_lines=bad_lines, seconds=0))
    if together:
        err.print("the evaluator also scores all rows together, but no shard had all rows; run a job to get this score")
    raise typer.Exit(summary.exit_code(bad_lines=bad_lines, fail_under=fail_under, strict=strict))


def _read_part(path: Path) -> _Part:
    """Return the closing line of a shard's results, and where the line of each row begins.

    Raises:
      InvalidRequest: the file cannot be read, does not come from a shard, or is incomplete.
    """
    places: dict[int, int] = {}
    closing: _Closing | None = None
    place, number = 0, 0
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            entry = _entry(path, number, line)
            if isinstance(entry, _Closing):
                closing = entry
            elif entry["index"] in places or closing is not None:
                raise InvalidRequest(f"{path}:{number} is a second result for the same row; run that shard again")
            else:
                places[entry["index"]] = place
            place += len(line)
    if closing is None:
        raise InvalidRequest(
            f"the last of the {number} lines of {path} does not name a shard, so the run did not finish or was "
            "started without --shard; run that shard again"
        )
    zero = closing.failures == Failures.ZERO
    return _Part(path, Shard.parse(closing.shard), closing.rows, closing.bad_lines, places, zero)


def _entry(path: Path, number: int, line: bytes) -> _Closing | dict[str, Any]:
    """Parse the line of a row, or the closing line.

    The file comes from another machine, so the line may be anything.
    """
    with suppress(InvalidJson, ValidationError):
        entry = decode_json(line)
        if isinstance(entry, dict) and "shard" in entry:
            return _read_closing(entry)
        if (
            isinstance(entry, dict)
            and "result" in entry
            and {type(entry.get("index")), type(entry.get("line", 0))} == {int}
        ):
            return entry
    raise InvalidRequest(
        f"{path}:{number} is not a line that `run --shard … --out` writes; the file may be truncated: run that shard "
        "again"
    )


def _result_of(entry: dict[str, Any], parts: list[_Part]) -> EvaluationResult:
    """Return the result in the line of a row.

    Raises:
      InvalidRequest: the line has no result, or a number that is too large for a float, which no evaluator returns.
    """
    try:
        result = _read_result(entry["result"])
        for number in (result.score or 0, *result.metrics.values()):
            float(number)
    except (ValidationError, OverflowError) as error:
        path = next(part.path for part in parts if part.shard.has(entry["index"]))
        raise InvalidRequest(
            f"row {entry['index']} of {path} does not have a result that `run --shard … --out` writes; run that shard "
            "again"
        ) from error
    return result


def _require_all(parts: list[_Part]) -> None:
    """Check that the parts are all shards of one run, each complete and given once.

    Raises:
      InvalidRequest: a shard is missing, repeated or incomplete; the message names the shards to run.
    """
    first = parts[0]
    found = {part.shard.number: part for part in parts}
    for part in parts:
        if (part.shard.of, part.rows) != (first.shard.of, first.rows):
            raise InvalidRequest(
                f"{part.path} is shard {part.shard} of {part.rows} rows, and {first.path} is shard {first.shard} of "
                f"{first.rows}: these shards belong to different runs; give the files of one run"
            )
        if part.failures_are_zero != first.failures_are_zero:
            raise InvalidRequest(
                f"only one of {part.path} and {first.path} counts failed rows as 0, so they cannot have a common mean; "
                "run the jobs again with the same `failures`"
            )
        if found[part.shard.number] is not part:
            raise InvalidRequest(
                f"{part.path} and {found[part.shard.number].path} are both shard {part.shard}; give only one of them"
            )
        due = part.shard.indexes(part.rows)
        if (strange := next((index for index in part.places if index not in due), None)) is not None:
            raise InvalidRequest(
                f"{part.path} has row {strange}, which is not in shard {part.shard}; run that shard again"
            )
        if len(part.places) < len(due):
            raise InvalidRequest(
                f"{part.path} has only {len(part.places)} of {len(due)} rows; run shard {part.shard} again"
            )
    if missing := sorted({*range(first.shard.of)} - {*found}):
        named = ", ".join(f"{number}/{first.shard.of}" for number in missing[:10])
        raise InvalidRequest(
            f"{len(missing)} of {first.shard.of} shards are missing: {named}; run them, and give their files too"
        )


def _require_same_evaluator(digests: dict[str, int], digest: str, parts: list[_Part], index: int) -> None:
    """Check that a row has the same evaluator as earlier rows. Remember the evaluator's digest in `digests`.

    Raises:
      InvalidRequest: the row has a different evaluator.
    """
    if digest in digests:
        return
    digests[digest] = index
    if len(digests) > 1:
        paths = {part.shard.number: part.path for part in parts}
        one, other = (paths[row % len(parts)] for row in digests.values())
        raise InvalidRequest(
            f"{one} and {other} come from different evaluators or settings, so they cannot have a common mean; run the "
            "shards again with the same code"
        )


def _lines(parts: list[_Part], opened: dict[int, BinaryIO]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the line of each row, both decoded and as bytes, in the order of the data.

    `opened` has the file of each shard.
    """
    shards = len(parts)
    places = array("Q", [_NONE]) * parts[0].rows
    for part in parts:
        for index, place in part.places.items():
            places[index] = place
    for index, place in enumerate(places):
        file = opened[index % shards]
        file.seek(place)
        line = file.readline()
        yield decode_json(line), line
