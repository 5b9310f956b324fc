"""`run`: evaluate a data file or one row, print a summary, write results."""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO, Final

import typer

from evaluator_host.cli.report import ReportFiles, read_report
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.table import has_corpus_scores
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import ModelTerms
from evaluator_host.engine.system.files import written_anew
from evaluator_host.platform.datasets.first_rows import FirstRows, first_rows_of_file
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.notes import Note
from evaluator_host.platform.datasets.rows import FileRow, RowFile, Shard
from evaluator_host.platform.evaluators.evaluation_service import (
    EvaluationService,
    advice_on_pins,
    open_evaluation_service,
    pins_to_add,
    prepare,
    with_declared,
)
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator, read_evaluator
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_found, print_json
from evaluator_host.platform.terminal.gates import FailUnderOption
from evaluator_host.platform.terminal.logins import tell_here
from evaluator_host.platform.terminal.summary import Summary, exit_code, parse_row, result_table
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Isolation, Policy, Replay, Row
from evaluator_host.types.formats import Format
from evaluator_host.types.groups import Groups, value_in
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.names import id_of
from evaluator_host.types.outcome import EvaluationResult, Status

_BAD_LINES_SHOWN: Final = 20
_WAITING_BYTES: Final = 64 << 20  # maximum number of bytes of results that wait until an earlier row is done
_OTHER_FORMATS: Final = (".csv", ".tsv", ".parquet", ".xlsx")  # suffixes that a file of results cannot have


def run(
    file: options.FileArgument,
    *,
    data: Annotated[
        Path | None, typer.Option(help="File of rows: .jsonl .ndjson .csv .tsv .json .parquet .xlsx")
    ] = None,
    inputs: Annotated[str | None, typer.Option(help="Without --data: inputs of the row, a JSON object.")] = None,
    outputs: Annotated[str | None, typer.Option(help="Without --data: outputs of the row, JSON or plain text.")] = None,
    trace: Annotated[str | None, typer.Option(help="Without --data: trace of the row, a JSON object.")] = None,
    variables: Annotated[str | None, typer.Option(help="Without --data: arguments of main(), a JSON object.")] = None,
    criteria: Annotated[str | None, typer.Option(help="Without --data: criteria of the row, a JSON object.")] = None,
    messages: Annotated[str | None, typer.Option(help="Without --data: conversation of the row, a JSON list.")] = None,
    language: options.LanguageOption = None,
    contract: options.ContractOption = Contract.AUTO,
    entry: options.EntryOption = None,
    config: options.ConfigOption = None,
    integers: options.IntegersOption = None,
    score_output: Annotated[
        str | None, typer.Option(help="Name of the output to use as the score, if there are several.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Run code that lost its indentation, if it can be restored.")
    ] = False,
    correct_answer_key: Annotated[
        str | None, typer.Option(help="For evaluate-v1: name of the input to pass as correct_answer.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="A row passes if score >= threshold.")] = None,
    package: options.PackageOption = None,
    policy: options.PolicyOption = Policy.NONE,
    data_file: options.FileOption = None,
    data_folder: options.FilesOption = None,
    python: options.PythonOption = None,
    timeout_s: options.TimeoutOption = None,
    memory_mb: options.MemoryOption = None,
    processes: Annotated[
        int | None, typer.Option(help="Maximum number of processes and threads of a row.", show_default="32")
    ] = None,
    disk_mb: Annotated[int | None, typer.Option(help="Size of /tmp in MB.", show_default="64")] = None,
    log_kb: Annotated[
        int | None, typer.Option(help="How many KB of stdout, and of stderr, to keep.", show_default="64")
    ] = None,
    result_kb: Annotated[
        int | None, typer.Option(help="Maximum size of the returned value as JSON, in KB.", show_default="1024")
    ] = None,
    model: options.ModelOption = None,
    network: options.NetworkOption = None,
    secret: options.CodeSecretOption = None,
    budget_requests: options.RequestsOption = None,
    budget_tokens: options.TokensOption = None,
    budget_cost: options.CostOption = None,
    replay: options.ReplayOption = Replay.OFF,
    isolation: Annotated[
        Isolation,
        typer.Option(help="batch: rows may share a process, which is faster, but state can leak between rows."),
    ] = Isolation.ROW,
    parallelism: Annotated[
        int | None, typer.Option(min=1, help="Number of sandboxes that run rows at once.", show_default="cores")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help="Column to use for a field of the row. Repeatable."),
    ] = None,
    format_: options.FormatOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of rows to read.")] = None,
    shard: Annotated[
        str | None, typer.Option(help="Score only part of the rows: 3/16 scores the rows whose index modulo 16 is 3.")
    ] = None,
    by: options.ByOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the results as JSONL, in the order of the rows. An interrupted run leaves FILE.part."),
    ] = None,
    include_rows: Annotated[bool, typer.Option("--include-rows", help="With --out: write the rows, too.")] = False,
    fail_under: FailUnderOption = None,
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit XML report to this file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Add a Markdown report to this file.")] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Results of an earlier run, written by --out. Reports show what changed since then; for "
            "an interval, run both as jobs on a host, and use `jobs compare`."
        ),
    ] = None,
    max_drop: Annotated[
        float | None, typer.Option(help="Exit 1 if the mean is lower than in --baseline by more than this.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 2 if a line of the data is not a valid row.")] = False,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Score rows with an evaluator.

    Exit code: 0 if all rows were scored, 1 if not, 2 for a mistake of yours, 3 for a fault of the host.
    """
    settings = load_settings(
        sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0, max_sandboxes_per_evaluator=parallelism
    )
    given = read_evaluator(
        file,
        language,
        host=settings,
        contract=contract,
        threshold=threshold,
        packages=package,
        policy=policy,
        extra=data_file or (),
        folders=data_folder or (),
        python=python,
        entry=entry,
        config=config,
        correct_answer_key=correct_answer_key,
        score_output=score_output,
        integers=integers,
        repair=repair or None,
        timeout_s=timeout_s,
        memory_mb=memory_mb,
        processes=processes,
        disk_mb=disk_mb,
        log_kb=log_kb,
        result_kb=result_kb,
        models=model,
        network=network,
        secrets=secret,
        requests=budget_requests,
        tokens=budget_tokens,
        cost=budget_cost,
    )
    if url is None and not as_json:
        tell_here()
    terms = ModelTerms(replay)
    single = {"inputs": inputs, "outputs": outputs, "trace": trace, "variables": variables, "criteria": criteria}
    single |= {"messages": messages}
    if data is None:
        row = parse_row(single)
        code = run_async(lambda: _run_one(given, row, settings, terms=terms, url=url, as_json=as_json))
        if code == 1 and all(text is None for text in single.values()):
            err.print("there is no row to score: give --data FILE, or describe one row with --inputs, --outputs, …")
        raise typer.Exit(code)
    if described := [f"--{name}" for name, value in single.items() if value is not None]:
        raise InvalidRequest(
            f"--data cannot be combined with {', '.join(described)}, which is for a single row; leave out one of them"
        )
    if out is not None and out.exists() and out.samefile(data):
        raise InvalidRequest(f"--out would overwrite the rows in {data} with their results; choose another file")
    if out is not None and out.suffix.lower() in _OTHER_FORMATS:
        named = out.with_suffix(".jsonl")
        raise InvalidRequest(
            f"--out writes JSON Lines, but {out} has the suffix of another format: write --out {named}"
        )
    work = Run(
        settings=settings,
        given=given,
        data=data,
        mapping=Mapping.parse(map_ or []),
        limit=limit,
        format_=format_,
        shard=None if shard is None else Shard.parse(shard),
        isolation=isolation,
        parallelism=parallelism,
        terms=terms,
        by=by,
        out=out,
        include_rows=include_rows,
        fail_under=fail_under,
        strict=strict,
        as_json=as_json,
        url=url,
    )
    raise typer.Exit(_reported(work, ReportFiles(junit, markdown, baseline, max_drop), file.name))


class OrderedLines:
    """Writes lines in the order of their numbers, from 0. At most 64 MB of lines wait for an earlier line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._next = 0
        self._waiting: dict[int, bytes] = {}
        self._waiting_bytes = 0

    def write(self, number: int, line: bytes) -> None:
        """Write a line: now, or after the lines before it."""
        if number < self._next:
            self._file.write(line)
            return
        self._waiting[number] = line
        self._waiting_bytes += len(line)
        while (line := self._waiting.pop(self._next, b"")) != b"":
            self._file.write(line)
            self._waiting_bytes -= len(line)
            self._next += 1
        if self._waiting_bytes > _WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write all waiting lines, even if earlier lines are missing."""
        for number, line in sorted(self._waiting.items()):
            self._file.write(line)
            self._next = number + 1
        self._waiting.clear()
        self._waiting_bytes = 0


class ScoredRows:
    """Remembers which rows were scored, in one byte for each row. `score_corpus` then scores these rows together."""

    def __init__(self) -> None:
        self._scored = bytearray()
        self._has_corpus_scores = False

    def note_result(self, index: int, result: EvaluationResult) -> None:
        if index >= len(self._scored):
            self._scored.extend(bytes(index + 1 - len(self._scored)))
        self._scored[index] = result.status is Status.SCORED
        self._has_corpus_scores = self._has_corpus_scores or has_corpus_scores(result.evaluator.contract)

    async def score_corpus(
        self, target: EvaluationService, evaluator: Evaluator, rows: Iterable[FileRow]
    ) -> EvaluationResult | None:
        """Return the score over all scored rows together, or None if the evaluator has no such score.

        Raises:
          InvalidRequest: the rows went to a host in several requests, so the host cannot compute these scores.
        """
        if not self._has_corpus_scores:
            return None
        if isinstance(target, Service):
            return await target.score_together(evaluator, self._scored_rows(rows))
        return target.together

    async def _scored_rows(self, rows: Iterable[FileRow]) -> AsyncGenerator[Row, None]:
        for (index, source), scored in zip(enumerate(rows), self._scored, strict=False):
            if scored:
                yield replace(source.row, index=index)


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of an evaluator over a data file: the options of one `run` command, and its state."""

    settings: Settings
    given: LoadedEvaluator
    data: Path
    mapping: Mapping
    limit: int | None
    format_: Format | None
    shard: Shard | None
    isolation: Isolation
    parallelism: int | None
    terms: ModelTerms
    by: str | None
    out: Path | None
    include_rows: bool
    fail_under: float | None
    strict: bool
    as_json: bool
    url: str | None
    _rows: RowFile = field(init=False)
    _told: set[str] = field(init=False, default_factory=set)  # messages about bad lines that were printed already
    # rows that were read, but have no result yet
    _waiting: dict[int, FileRow] = field(init=False, default_factory=dict)
    _summary: Summary = field(init=False, default_factory=Summary)
    _groups: Groups = field(init=False, default_factory=Groups)
    _scored: ScoredRows = field(init=False, default_factory=ScoredRows)
    _first: FirstRows | None = field(init=False, default=None)
    _seconds: float = field(init=False, default=0.0)
    _advice: list[str] = field(init=False, default_factory=list)  # what to do about the first failed row

    def __post_init__(self) -> None:
        self._rows = self._open_rows(self._report_bad_line, lambda note: err.print(plain(f"{self.data}: {note}")))

    def _open_rows(self, report: Callable[[int, str], None], note: Note = lambda _: None) -> RowFile:
        max_row_bytes = self.settings.body_mb << 20
        return RowFile(
            self.data,
            self.mapping,
            max_row_bytes=max_row_bytes,
            limit=self.limit,
            report=report,
            shard=self.shard or Shard(),
            format_=self.format_,
            note=note,
        )

    async def run(self) -> None:
        """Evaluate every row."""
        started = time.perf_counter()
        with ExitStack() as stack:
            results = stack.enter_context(written_anew(self.out)) if self.out else None
            async with open_evaluation_service(self.settings, self.url) as target:
                await prepare(target, self.given, shown=not self.as_json)
                await self._require_first_rows(target)
                started = time.perf_counter()
                await self._evaluate(target, results)
                await self._score_together(target)
                failed = self._summary.first_failure
                if failed is not None and (pins := await pins_to_add(target, self.given, failed[2])):
                    self._advice.append(advice_on_pins(pins, failed[2]))
                    if self._first is not None and self._first.without_outputs:
                        self._advice.append(self._first.no_outputs("the evaluator").detail)
                self._seconds = time.perf_counter() - started
            if results is not None and self.shard is not None:
                results.write(self.shard.closing_line(rows=self._rows.count, bad_lines=self._rows.bad))
            if not self._summary.rows and (self.shard is None or not self._rows.count):
                bad = self._rows.bad
                why = f"bad lines: {bad}" if bad else "the file is empty, or has only a header"
                raise InvalidRequest(f"there is no row to score in {self.data}: {why}")

    async def _require_first_rows(self, target: EvaluationService) -> None:
        """Refuse a mapping to a column that the file lacks.

        Refuse code that reads outputs if none of the first rows has any.
        """
        bytes_ = self.settings.body_mb << 20
        first = first_rows_of_file(self.data, self.mapping, max_row_bytes=bytes_, format_=self.format_)
        if first is not None:
            self._first = first
            first.require_columns()
            if self.by is not None:
                first.require_column("--by", self.by)
            await first.require_outputs([("the evaluator", self.given.evaluator)], target.check)

    async def _evaluate(self, target: EvaluationService, results: BinaryIO | None) -> None:
        stream = target.evaluate_rows(
            self.given.evaluator,
            self._draw(),
            isolation=self.isolation,
            parallelism=self.parallelism,
            caller=Caller(terms=self.terms),
        )
        from evaluator_host.platform.terminal.progress import Progress  # noqa: PLC0415 - a single row has no progress

        with Progress(self._rows.size, shown=not self.as_json) as progress, ExitStack() as written:
            lines = OrderedLines(results) if results is not None else None
            if lines is not None:
                written.callback(lines.flush)
            async with aclosing(stream) as answers:
                async for index, answer in answers:
                    result = with_declared(answer, self.given)
                    source = self._waiting.pop(index)
                    self._summary.add(result, row=source.index, line=source.line)
                    self._scored.note_result(index, result)
                    if self.by is not None:
                        value = value_in(source.record, self.by)
                        self._groups.add(value, result.status, result.score, passed=result.passed)
                    if lines is not None:
                        lines.write(index, self._line(source, result))
                    progress.advance(self._rows.position, self._summary)

    async def _score_together(self, target: EvaluationService) -> None:
        if self.shard is not None:  # scores over all rows need all rows, and a shard has only some of them
            return
        # bad lines were already reported when the file was read for the first time
        rows = self._open_rows(lambda _line, _message: None)
        try:
            self._summary.together = await self._scored.score_corpus(target, self.given.evaluator, rows)
        except InvalidRequest as error:
            err.print(plain(error.detail))

    def _draw(self) -> Iterator[Row]:
        for index, source in enumerate(self._rows):
            self._waiting[index] = source
            if self.by is not None:
                # create groups here, in the order of the rows, because results arrive in another order
                self._groups.open(value_in(source.record, self.by))
            yield source.row

    def _line(self, source: FileRow, result: EvaluationResult) -> bytes:
        entry: dict[str, Any] = {"index": source.index, "line": source.line}
        if (name := id_of(source.record)) is not None:
            entry["id"] = name
        if self.include_rows:
            entry["row"] = source.record
        return encode_json({**entry, "result": result}) + b"\n"

    def _report_bad_line(self, line: int, message: str) -> None:
        if message in self._told:
            return
        self._told.add(message)
        if len(self._told) <= _BAD_LINES_SHOWN:
            err.print(plain(f"{self.data}:{line}: {message}; the line is left out"))
        elif len(self._told) == _BAD_LINES_SHOWN + 1:
            err.print("there are more bad lines; the summary says how many")

    def print_summary(self, comparison: dict[str, Any] | None = None) -> None:
        """Print the summary, and hints on failed rows. As JSON, the summary also has the comparison with a baseline."""
        bad, groups = self._rows.bad, self._groups.statistics(str(self.data))
        if self.as_json:
            by = {"column": self.by, "groups": groups.groups, "others": groups.others}
            shown = self._summary.to_json(bad_lines=bad, seconds=self._seconds)
            shown |= {} if self.by is None else {"by": by}
            print_json(shown if comparison is None else {**shown, "comparison": comparison})
        else:
            out.print(self._summary.to_table(bad_lines=bad, seconds=self._seconds))
            if self.by is not None:
                from evaluator_host.platform.terminal.job_tables import groups_table  # noqa: PLC0415 - few runs need it

                out.print(plain("\n"), groups_table(groups, self.by), sep="")
        for advice in filter(None, self._advice):
            err.print(plain(advice))

    @property
    def exit_code(self) -> int:
        """The exit code of the command, without a comparison with a baseline."""
        return self._summary.exit_code(bad_lines=self._rows.bad, fail_under=self.fail_under, strict=self.strict)

    @property
    def gates(self) -> dict[str, str]:
        """The gates (such as `--fail-under`) that the run did not pass, each with the reason.

        Any of them makes the exit code 1.
        """
        return self._summary.gates(bad_lines=self._rows.bad, fail_under=self.fail_under, strict=self.strict)


def _reported(work: Run, reports: ReportFiles, name: str) -> int:
    if not reports.wanted:
        run_async(work.run)
        work.print_summary()
        return work.exit_code
    with TemporaryDirectory() as folder:
        work.out = work.out or Path(folder) / "results.jsonl"
        run_async(work.run)
        report = read_report(work.out, name)
    work.print_summary(reports.comparison(report))
    return max(work.exit_code, reports.write(report, work.gates))


async def _run_one(
    given: LoadedEvaluator, row: Row, settings: Settings, *, terms: ModelTerms, url: str | None, as_json: bool
) -> int:
    async with open_evaluation_service(settings, url) as target:
        await prepare(target, given, shown=not as_json)
        result = with_declared(await target.evaluate(given.evaluator, row, caller=Caller(terms=terms)), given)
        advice = advice_on_pins(await pins_to_add(target, given, result), result)
    print_found(result, result_table, as_json=as_json)
    if advice:
        err.print(plain(advice))
    return exit_code(result)
