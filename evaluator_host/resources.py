"""The groups of verbs of `Client` over what a host stores: evaluators, data sets."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import httpx

from evaluator_host import calls, record_calls
from evaluator_host.calls import Call
from evaluator_host.datasets.format import Format
from evaluator_host.model.evaluator import Evaluator, Json, Row
from evaluator_host.schemas.datasets import DatasetReport
from evaluator_host.schemas.evaluators import EvaluatorReport
from evaluator_host.schemas.migration import StoredMigration
from evaluator_host.schemas.traffic import TraceReport

T = TypeVar("T")

_DATA: Final = "data:"
_PAGE: Final = 500


class Send(Protocol):
    """Sends a call and returns what was answered."""

    def __call__(self, call: Call[T]) -> T:
        """Send it."""


class EvaluatorCalls:
    """Named evaluators of the key's workspace."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def create(
        self, name: str, evaluator: Evaluator, *, description: str = "", sampling: float = 1.0, force: bool = False
    ) -> EvaluatorReport:
        """Keep an evaluator under a name, provided that it loads (`force`: in any case).

        `sampling` is the share of live traces that it is to score.

        Raises:
          NameTaken: there is one of that name.
          InvalidRequest: it does not load; the problems say why.
        """
        return self._send(record_calls.create_evaluator(name, evaluator, description, sampling=sampling, force=force))

    def update(
        self,
        name: str,
        evaluator: Evaluator,
        *,
        description: str | None = None,
        sampling: float | None = None,
        force: bool = False,
    ) -> EvaluatorReport:
        """Make the next version; what the newest one is already makes none. What is None stays as it was."""
        return self._send(record_calls.update_evaluator(name, evaluator, description, sampling=sampling, force=force))

    def all(self) -> list[EvaluatorReport]:
        """Return the newest version of each, by name."""
        return self._send(record_calls.evaluators())

    def get(self, name: str, version: int | None = None) -> EvaluatorReport:
        """Return a version, by default the newest."""
        return self._send(record_calls.evaluator(name, version))

    def versions(self, name: str) -> list[EvaluatorReport]:
        """Return every version, the newest first."""
        return self._send(record_calls.versions(name))

    def traces(
        self, name: str, *, status: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[TraceReport]:
        """Return scored traces of live traffic, the newest first; `before` is the `number` of a page's last."""
        return self._send(record_calls.traces(name, status=status, limit=limit, before=before))

    def migrate(
        self,
        *names: str,
        rows: Iterable[Row] | None = None,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        dry_run: bool = True,
        force: bool = False,
    ) -> list[StoredMigration]:
        """Migrate legacy evaluators, by default every one: say what would become of each, or make the next versions.

        `rows`, `dataset`, `mapping`, `job` are those of `Client.migrate`; `force` makes versions of the unproven too.
        """
        return self._send(
            record_calls.migrate_evaluators(
                names, rows, dataset, mapping=mapping, job=job, dry_run=dry_run, force=force
            )
        )

    def delete(self, name: str) -> None:
        """Remove an evaluator and its versions. Jobs keep what they ran."""
        self._send(record_calls.delete_evaluator(name))


class DatasetCalls:
    """Data sets of the key's workspace."""

    def __init__(self, send: Send, http: httpx.Client) -> None:
        self._send = send
        self._http = http

    def upload(
        self, name: str, data: Path | str | Iterable[dict[str, Json]], *, replace: bool = False
    ) -> DatasetReport:
        """Keep rows under a name: of a file (.jsonl .csv .tsv .json .parquet), or given one by one.

        Neither a file nor an iterable is ever whole in memory.

        Raises:
          NameTaken: there is one of that name, and it is not to be replaced.
          InvalidRequest: the file is not of its format, or there is no row in it.
        """
        path = record_calls.upload_path(name, replace=replace)
        if isinstance(data, Path | str):
            format_ = Format.of_name(str(data))
            with Path(data).open("rb") as file:
                return self._upload(path, file, format_)
        return self._upload(path, (calls.encode(row) + b"\n" for row in data), Format.JSONL)

    def all(self) -> list[DatasetReport]:
        """Return the data sets, the newest first."""
        return self._send(record_calls.datasets())

    def get(self, name: str) -> DatasetReport:
        """Return what is known of a data set."""
        return self._send(record_calls.dataset(name))

    def rows(self, name: str) -> Iterator[dict[str, Json]]:
        """Yield the rows of a data set."""
        first = 0
        while True:
            page = self._send(record_calls.dataset_rows(name, first, _PAGE))
            yield from page
            if len(page) < _PAGE:
                return
            first += len(page)

    def delete(self, name: str) -> None:
        """Remove a data set. Jobs that use its rows keep them."""
        self._send(record_calls.delete_dataset(name))

    def _upload(self, path: str, content: Any, format_: Format) -> DatasetReport:
        call = Call("POST", path, None, record_calls.read_dataset)
        try:
            response = self._http.post(path, content=content, headers={"Content-Type": format_.media_type})
        except httpx.HTTPError as error:
            raise calls.unreachable(error, self._http.base_url) from error
        return calls.answer(call, response)
