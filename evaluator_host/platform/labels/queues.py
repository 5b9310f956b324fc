"""Queues of rows, from a job or a data set, that people label. Agreement reports compare evaluators with the labels."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.memory import Reservation
from evaluator_host.platform.datasets.mapping import column_of, outputs_column
from evaluator_host.platform.datasets.rows import ALL
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.results.results import JobResults
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.spec import StoredSpec, spec_from_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.labels.table import Labels, LabelState, StoredLabel, StoredQueue
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.labels import (
    LabelEntry,
    LabelKind,
    Labeller,
    LabelPage,
    LabelQueue,
    LabelRow,
    LabelTask,
    RowChoice,
)

MOST_ROWS: Final = 10_000
_SEVERAL: Final = 2
_UNMAPPED: Final = "outputs"  # marks the outputs of a job whose mapping does not name `outputs`
_refused: Final = InvalidRequest.of


@dataclass(frozen=True, slots=True)
class _Content:
    """Parts of a queue that are stored together, as JSON."""

    task: LabelTask
    dataset: str | None
    # source of the outputs that people see; None if they see whole rows, or if the queue was stored without this field
    outputs: str | None = None


_CONTENT: Final = Adapter(_Content)


@dataclass(frozen=True, slots=True)
class LabelQueues:
    """Creates, fills and reads the label queues of one host.

    Every method for an existing queue raises `NotFound` if there is no queue with that name.
    """

    labels: Labels
    jobs: Jobs
    results: JobResults
    rows: RowReader
    datasets: DatasetService
    usage: StorageUsage

    async def create_queue(
        self,
        workspace_id: str,
        name: str,
        task: LabelTask,
        *,
        job: str | None = None,
        dataset: str | None = None,
        rows: RowChoice | Sequence[int] = RowChoice.ALL,
        evaluator: str | None = None,
        limit: int = MOST_ROWS,
    ) -> LabelQueue:
        """Create and return a queue of rows from a job or a data set; exactly one of `job` and `dataset` is given.

        `rows` are row numbers, or a choice by the results of `evaluator` (None for any), such as failed rows. If
        there are more than `limit` rows, `limit` evenly spread rows are taken.

        Raises:
          InvalidRequest: a field is not valid, or there are no such rows.
          NotFound: there is no such job, evaluator or data set.
          NameTaken: there is a queue with that name.
          InUse: the workspace has too many queues.
          OverQuota: the workspace has reached its quota.
        """
        _require_task(task)
        await self.usage.require_room(workspace_id)
        if (job is None) == (dataset is None):
            raise _refused("job", "a queue must have the rows of one job or of one data set", "give `job` or `dataset`")
        own_outputs, shard, outputs = False, ALL, None
        if job is not None:
            found = await self.jobs.get_job(workspace_id, job)
            dataset_id, count, dataset = found.dataset_id, found.rows, found.dataset_name
            spec = spec_from_json(found.request)
            own_outputs, shard, outputs = spec.target is not None, spec.shard, _outputs_source(spec)
        else:
            kept = await self.datasets.get_dataset(workspace_id, str(dataset))
            dataset_id, count = kept.id, kept.rows
        if isinstance(rows, RowChoice):
            if job is None and rows is not RowChoice.ALL:
                raise _refused(
                    "rows",
                    f"`{rows}` chooses rows by the results of a job, so it needs a `job`",
                    "give `job`, or the numbers of the rows",
                )
            chosen = await self._chosen(workspace_id, job, rows, evaluator, shard.indexes(count))
        else:
            chosen = sorted(set(rows))
            if chosen and not 0 <= chosen[0] <= chosen[-1] < count:
                raise _refused(
                    "rows", f"a row does not exist; the rows are numbered 0 to {count - 1}", "leave out other numbers"
                )
        if not chosen:
            raise _refused(
                "rows", f"the job has no {rows} rows" if rows else "the list of rows is empty; give at least one number"
            )
        limit = min(limit, MOST_ROWS)
        if len(chosen) > limit:
            chosen = [chosen[place * len(chosen) // limit] for place in range(limit)]
        content = _CONTENT.json(_Content(task, dataset, outputs))
        made = await self.labels.add_queue(
            workspace_id, name, chosen, dataset_id=dataset_id, job_id=job, own_outputs=own_outputs, content=content
        )
        return await self._report(made)

    async def _chosen(
        self, workspace_id: str, job: str | None, rows: RowChoice, evaluator: str | None, every: Sequence[int]
    ) -> Sequence[int]:
        if job is None or rows is RowChoice.ALL:
            return every
        passed = {RowChoice.PASSED: True, RowChoice.NOT_PASSED: False}.get(rows)
        status = rows.value if passed is None else None
        return await self.results.chosen_rows(workspace_id, job, evaluator=evaluator, status=status, passed=passed)

    async def list_queues(self, workspace_id: str, *, job: str | None = None) -> AsyncGenerator[list[LabelQueue], None]:
        """Yield the label queues of a workspace, newest first, in parts: all, or only those with labels for this job.

        Raises:
          NotFound: there is no such job.
        """
        if job is not None:
            queues = self._queues_of(await self.jobs.get_job(workspace_id, job))
        else:
            queues = self.labels.parts(workspace_id)
        async with aclosing(queues) as parts:
            async for part in parts:
                yield await self._reports(part)

    async def _reports(self, queues: Sequence[StoredQueue]) -> list[LabelQueue]:
        counted = await self.labels.count_labels(queues)
        # a thread decodes the queues: each may have 100 KB of instructions and choices
        return await asyncio.to_thread(lambda: [_report(one, counted[one.id]) for one in queues])

    async def get_queue(self, workspace_id: str, name: str) -> LabelQueue:
        """Return a queue and its progress."""
        return await self._report(await self.labels.get_queue(workspace_id, name))

    async def delete_queue(self, workspace_id: str, name: str) -> None:
        """Delete a queue with its labels."""
        await self.labels.delete_queue(await self.labels.get_queue(workspace_id, name))

    async def next_row(
        self, workspace_id: str, name: str, *, by: str | None, key_id: str | None, memory: Reservation
    ) -> LabelRow | None:
        """Return the next waiting row, and reserve it for a person for 10 minutes. None if no row is waiting.

        The person is `by`, or the name of the key on a host with keys. `memory` reserves the memory that the row takes.

        Raises:
          Busy: `memory` has no room for the row.
        """
        queue = await self.labels.get_queue(workspace_id, name)
        taken = await self.labels.take_row(queue, await self._person(by, key_id))
        return None if taken is None else await self._shown(queue, taken, memory)

    async def list_rows(
        self, workspace_id: str, name: str, *, state: LabelState | None = None, after: int = -1, limit: int = 100
    ) -> LabelPage:
        """Return the labels of a queue's rows after row number `after`, but not the rows' data."""
        queue = await self.labels.get_queue(workspace_id, name)
        found = await self.labels.list_labels(queue, state=state, after=after, limit=limit + 1)
        shown = tuple(LabelEntry(**_entry(one)) for one in found[:limit])
        return LabelPage(shown, shown[-1].index if len(found) > limit else None)

    async def get_row(self, workspace_id: str, name: str, index: int, *, memory: Reservation) -> LabelRow:
        """Return a row of a queue with its data. `memory` reserves the memory that the row takes.

        Raises:
          NotFound: there is no such queue or row.
          Busy: `memory` has no room for the row.
        """
        queue = await self.labels.get_queue(workspace_id, name)
        return await self._shown(queue, await self.labels.get_label(queue, index), memory)

    async def label_row(
        self,
        workspace_id: str,
        name: str,
        index: int,
        label: Json,
        *,
        skip: bool = False,
        note: str = "",
        by: str | None = None,
        key_id: str | None = None,
    ) -> LabelQueue:
        """Label a row, skip it, or remove its label if the new label is None. Return the queue.

        Raises:
          NotFound: there is no such queue or row.
          InvalidRequest: the queue does not allow this label.
          OverQuota: the workspace has reached its quota.
        """
        await self.usage.require_room(workspace_id, len(note))
        queue = await self.labels.get_queue(workspace_id, name)
        if skip and label is not None:
            raise _refused("skip", "a row that is skipped cannot have a label", "give `label` or `skip`, not both")
        if label is not None:
            _require_label(_CONTENT.read_json(queue.content).task, label)
        person = await self._person(by, key_id)
        if label is None and not skip:
            made = StoredLabel(index, LabelState.WAITING, None, "", None, None)
        else:
            state = LabelState.SKIPPED if skip else LabelState.LABELLED
            text = None if skip else encode_json(label).decode()
            made = StoredLabel(index, state, text, note, person, datetime.now(UTC))
        await self.labels.set_label(queue, made)
        return await self._report(queue)

    async def labels_of(self, job: Job, queue: str | None) -> dict[int, Json]:
        """Return the newest label of each row in a job: from one queue, or from all queues that apply to the job.

        Raises:
          NotFound: there is no such queue.
          InvalidRequest: there are no such labels, or the labelling tasks of the queues differ.
        """
        wanted = None if queue is None else await self.labels.get_queue(job.workspace_id, queue)
        found: dict[int, tuple[str, datetime | None]] = {}
        asked: dict[LabelTask, str] = {}  # for each labelling task, the name of a queue with labels for it
        some = False
        async with aclosing(self._queues_of(job)) as parts:
            async for part in parts:
                for one in part:
                    if wanted is not None and one.id != wanted.id:
                        continue
                    some = True
                    labels = await self.labels.given_labels(one)
                    if labels:
                        task = (await _content(one)).task
                        asked[replace(task, instructions=task.instructions.strip(), show_results=False)] = one.name
                    for index, label, at in labels:
                        if index not in found or str(at) > str(found[index][1]):
                            found[index] = label, at
        if not some and queue is None:
            raise InvalidRequest(
                "no label queue has rows of this job with its outputs; make one, or name a column of the data set "
                "that has the labels"
            )
        if not some:
            raise InvalidRequest(
                f"the labels of the queue {str(queue)[:80]} are for other rows or outputs than those of this "
                "job; choose a queue that was made from this job or its data set"
            )
        if len(asked) > 1:
            told = "; ".join(f"{name} ({task.kind}: {task.instructions[:60]})" for task, name in asked.items())
            raise _refused(
                "queue",
                f"the label queues of this job ask people different questions: {told}",
                "name one of them as `queue`, or with `--queue` on the command line",
            )
        return {row: decode_json(label.encode()) for row, (label, _) in found.items()}

    async def _queues_of(self, job: Job) -> AsyncGenerator[list[StoredQueue], None]:
        """Yield the queues whose labels apply to a job, in parts: people see its outputs, or whole rows with them."""
        spec = await asyncio.to_thread(spec_from_json, job.request)
        async with aclosing(self.labels.parts(job.workspace_id, job.dataset_id)) as parts:
            async for part in parts:
                columns = (await self.datasets.get_dataset(job.workspace_id, job.dataset_id)).columns
                yield [one for one in part if one.job_id == job.id or await self._shows_outputs(one, spec, columns)]

    async def _shows_outputs(self, queue: StoredQueue, spec: StoredSpec, columns: Sequence[str]) -> bool:
        if spec.target is not None or queue.own_outputs:
            return False
        outputs = await self._outputs_of(queue)
        return outputs is None or _outputs_column(outputs, columns) == _outputs_column(_outputs_source(spec), columns)

    async def _outputs_of(self, queue: StoredQueue) -> str | None:
        """Return the source of the outputs that people see in a queue, or None. See `_Content.outputs`."""
        outputs = (await _content(queue)).outputs
        if outputs is None and queue.job_id is not None:
            with suppress(NotFound):  # raised if the job was deleted
                job = await self.jobs.get_job(queue.workspace_id, queue.job_id)
                outputs = _outputs_source(spec_from_json(job.request))
        return outputs

    async def _person(self, by: str | None, key_id: str | None) -> str | None:
        return by if key_id is None else await self.labels.key_name(key_id)

    async def _shown(self, queue: StoredQueue, stored: StoredLabel, memory: Reservation) -> LabelRow:
        entry = _entry(stored)
        if queue.job_id is not None:
            with suppress(NotFound):  # raised if the job was deleted; the data set stays
                found = await self.rows.one(queue.workspace_id, queue.job_id, stored.index, memory=memory)
                task = _CONTENT.read_json(queue.content).task
                hidden = stored.state == LabelState.WAITING and not task.show_results
                return LabelRow(**entry, row=found.row, given=found.given, results=() if hidden else found.results)
        (row,) = await self.datasets.rows_by_number(queue.workspace_id, queue.dataset_id, [stored.index], memory=memory)
        return LabelRow(**entry, row=row, given=None, results=())

    async def _report(self, queue: StoredQueue) -> LabelQueue:
        (report,) = await self._reports([queue])
        return report


async def _content(queue: StoredQueue) -> _Content:
    """Decode a queue's content in a thread, because it may have 100 KB."""
    return await asyncio.to_thread(_CONTENT.read_json, queue.content)


def _outputs_source(spec: StoredSpec) -> str:
    return spec.mapping.get("outputs", _UNMAPPED)


def _outputs_column(source: str, columns: Sequence[str]) -> str:
    """Return the source of outputs in a normal form, so that two sources of the same outputs are equal."""
    return (source == _UNMAPPED and outputs_column(columns)) or column_of(source)


def _report(queue: StoredQueue, counted: Sequence[tuple[str, str | None, int, datetime | None]]) -> LabelQueue:
    content = _CONTENT.read_json(queue.content)
    counts = dict.fromkeys(LabelState, 0)
    people: dict[str | None, Labeller] = {}
    for state, by, count, last_at in counted:
        counts[LabelState(state)] += count
        if state != LabelState.WAITING:
            known = asdict(people.get(by, Labeller(by, 0, 0, None)))
            known[state] += count
            known["last_at"] = max(filter(None, (known["last_at"], last_at)), default=None)
            people[by] = Labeller(**known)
    return LabelQueue(
        name=queue.name,
        job=queue.job_id,
        dataset=content.dataset,
        dataset_id=queue.dataset_id,
        task=content.task,
        rows=sum(counts.values()),
        labelled=counts[LabelState.LABELLED],
        skipped=counts[LabelState.SKIPPED],
        waiting=counts[LabelState.WAITING],
        people=tuple(sorted(people.values(), key=lambda one: (-one.labelled, one.name or ""))),
        created_at=queue.created_at,
    )


def _entry(stored: StoredLabel) -> dict[str, Any]:
    label = None if stored.label is None else decode_json(stored.label.encode())
    return {
        "index": stored.index, "state": stored.state, "label": label, "note": stored.note, "by": stored.by,
        "at": stored.at,
    }  # fmt: skip


def _require_task(task: LabelTask) -> None:
    if task.kind is LabelKind.CHOICE and (
        len(set(task.choices)) < _SEVERAL or len(set(task.choices)) < len(task.choices)
    ):
        raise _refused(
            "choices",
            "a queue of kind choice needs at least two choices, all different",
            'write them as in ["good", "bad"]',
        )
    if task.kind is not LabelKind.CHOICE and task.choices:
        raise _refused(
            "choices", f"a queue of kind {task.kind} has no choices", "leave them out, or set kind to choice"
        )
    if not task.min < task.max:
        raise _refused("max", f"`max` is {task.max:g}, but must be above `min`, {task.min:g}", "give a larger `max`")


def _require_label(task: LabelTask, label: Json) -> None:
    if task.kind is LabelKind.PASSED:
        taken, wanted = isinstance(label, bool), "true or false"
    elif task.kind is LabelKind.SCORE:
        is_number = isinstance(label, int | float) and not isinstance(label, bool)
        taken = is_number and task.min <= float(str(label)) <= task.max
        wanted = f"a number from {task.min:g} to {task.max:g}"
    else:
        taken, wanted = label in task.choices, f"one of {', '.join(task.choices)}"
    if not taken:
        raise _refused("label", f"{str(label)[:80]} is not a label of this queue; give {wanted}")
