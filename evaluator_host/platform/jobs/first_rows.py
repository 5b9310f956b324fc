"""Checks the first rows of a job before the job is stored."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.first_rows import FirstRows, first_rows
from evaluator_host.platform.datasets.mapping import NO_OUTPUTS, is_keyed
from evaluator_host.platform.datasets.rendering import read_names
from evaluator_host.platform.datasets.suggestion import FIRST_ROWS, suggest_mapping
from evaluator_host.platform.datasets.table import Dataset
from evaluator_host.platform.jobs.spec import JobSpec, StoredSpec
from evaluator_host.types.errors import HostError, StoreUnavailable
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import Contract, Evaluator
from evaluator_host.types.jobs import EvaluatorReads, MappingAdvice
from evaluator_host.types.json_values import decode_json, encode_json

_BYTES: Final = 8 << 20  # maximum number of bytes of rows to read
_CHECK_S: Final = 60.0  # seconds for loading all evaluators; packages may have to be installed first
_ROWS: Final = "the data set"


class FirstRowsOfJobs:
    """Checks the first rows of jobs.

    The mapping must fit the columns, and the rows must have outputs if an evaluator reads outputs.
    """

    def __init__(self, service: Service, folder: RowsFolder) -> None:
        self._service = service
        self._folder = folder

    async def require(
        self,
        spec: JobSpec,
        evaluators: Sequence[tuple[str, Evaluator]],  # pairs of a label and an evaluator
        dataset: Dataset | None,  # a stored data set; None if the rows come with the job
        workspace_id: str,
    ) -> None:
        """Check the first rows of a job.

        Raises:
          InvalidRequest: the mapping names an unknown column, an evaluator reads outputs and no row has outputs, or
            the prompt of a judge reads a column that no row has.
          HostError: for the reasons given at `LimitedProcesses.call`.
        """
        judges = any(one.contract is Contract.JUDGE for _, one in evaluators)
        if spec.mapping == dict([NO_OUTPUTS]) and not judges:  # a mapping with only outputs=none needs no check
            return
        found = await self.read(spec, dataset, workspace_id)
        if found is None:
            return
        # this runs in a thread, because a row may have a thousand columns to compare
        await asyncio.to_thread(found.require_columns)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CHECK_S):
                check = partial(self._report, workspace_id=workspace_id)
                await found.require_inputs(evaluators, check, generated=spec.target is not None)
                if spec.target is None and not any(map(is_keyed, found.records)):
                    await found.require_outputs(evaluators, check)

    async def advise(
        self,
        spec: JobSpec,
        evaluators: Sequence[tuple[str, Evaluator]],  # pairs of a label and an evaluator
        dataset: Dataset | None,
        workspace_id: str,
    ) -> MappingAdvice:
        """Return the mapping that the data and the evaluators of a job suggest. The mapping in the spec is ignored."""
        found = await self.read(replace(spec, mapping={}), dataset, workspace_id)
        if found is None:
            return MappingAdvice((), {}, ())
        reads: list[EvaluatorReads] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(_CHECK_S):
                for label, one in evaluators:
                    report = await self._report(one, workspace_id)
                    if report is not None and report.contract is not None:
                        reads.append(EvaluatorReads(label, bool(report.reads.outputs), report.reads.inputs))
        inputs = [name for one in reads for name in one.inputs]
        generated = spec.target is not None
        mapping = await asyncio.to_thread(suggest_mapping, found.columns, inputs, found.records, generated=generated)
        return MappingAdvice(found.columns, mapping, tuple(reads))

    async def read(self, spec: JobSpec, dataset: Dataset | None, workspace_id: str) -> FirstRows | None:
        """Return the first rows of a job; None if another host has their files."""
        mapping = StoredSpec(spec.mapping).parse_mapping()
        try:
            lines = await asyncio.to_thread(lambda: list(_at_most(self._lines(spec, dataset))))
        except StoreUnavailable:
            return None
        templates = [template for _, template in mapping.templates]
        names = await read_names(self._service.processes, workspace_id, templates)
        notes = () if dataset is None else dataset.facts.notes
        name = _ROWS if dataset is None or dataset.name is None else dataset.name
        count = len(spec.dataset) if dataset is None else dataset.facts.rows
        return await asyncio.to_thread(
            lambda: first_rows(
                name,
                [decode_json(one) for one in lines],
                mapping,
                names,
                columns=_columns(spec, dataset),
                notes=notes,
                complete=len(lines) >= count,
            )
        )

    def _lines(self, spec: JobSpec, dataset: Dataset | None) -> Iterable[bytes]:
        if dataset is None:
            return (encode_json(one) + b"\n" for one in spec.dataset)
        return (line for _, line in self._folder.lines(dataset.id))

    async def _report(self, evaluator: Evaluator, workspace_id: str) -> CheckReport | None:
        with suppress(HostError):  # the job itself will report the fault when it loads the evaluator
            return await self._service.check(evaluator, caller=Caller(workspace_id))
        return None


def _columns(spec: JobSpec, dataset: Dataset | None) -> Iterable[str]:
    """Return the names of all columns in the rows of a job."""
    if dataset is not None:
        return dataset.facts.columns
    return dict.fromkeys(name for one in spec.dataset if isinstance(one, dict) for name in one)


def _at_most(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the first lines, up to a total of `_BYTES` bytes."""
    size = 0
    for line in islice(lines, FIRST_ROWS):
        yield line
        size += len(line)
        if size > _BYTES:
            return
