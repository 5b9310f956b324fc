"""Client methods for rows that wait for people to label them: `client.labels`."""

from typing import Any

from ..types.evaluator import Json
from ..types.labels import LabelPage, LabelQueue, LabelRow
from .calls import Call, encode, query
from .transport import NamedVerbs, TransportT, verb


class LabelVerbs(NamedVerbs[TransportT, LabelQueue]):
    """Methods for the label queues in your key's workspace. Deleting a queue deletes its labels."""

    _PATH = "/v1/label-queues"
    _REPORT = LabelQueue

    @verb
    async def create(self, /, name: str, **given: Any) -> LabelQueue:
        """Create a queue of rows that wait for labels.

        Args:
          name: Name of the queue.
          given: `job` or `dataset`, `kind`, `choices`, `rows`, `limit` and more, as in `POST /v1/label-queues`.

        Raises:
          NameTaken: there is already a queue of that name.
          NotFound: there is no such job, evaluator or data set.
          InvalidRequest: a field is not valid; `problems` says why.
        """
        return await self._transport.send(Call("POST", "/v1/label-queues", LabelQueue, encode({"name": name, **given})))

    @verb
    async def all(self, *, job: str | None = None) -> list[LabelQueue]:
        """Return the queues, newest first.

        Args:
          job: Id of a job; only queues with labels for this job are returned.
        """
        return await self._get("/v1/label-queues" + query(job=job), list[LabelQueue])

    @verb
    async def next(self, name: str, *, by: str | None = None) -> LabelRow | None:
        """Return a waiting row, reserved for this person for 10 minutes; None if no row is waiting.

        Args:
          name: Name of the queue.
          by: Name of the person; a host with keys uses the name of the key instead.
        """
        call = Call("POST", self._path(name, "next"), LabelRow, encode({"by": by}))
        return await self._transport.send(call)

    @verb
    async def rows(self, name: str, *, state: str | None = None, after: int = -1, limit: int = 100) -> LabelPage:
        """Return a queue's rows in the order of their numbers, but not their data.

        Args:
          name: Name of the queue.
          state: `waiting`, `labelled` or `skipped`; None for all.
          after: `next_after` of the previous page.
          limit: Maximum number of rows.
        """
        return await self._get(self._path(name, "rows") + query(state=state, after=after, limit=limit), LabelPage)

    @verb
    async def row(self, name: str, index: int) -> LabelRow:
        """Return a row of a queue with its data.

        Args:
          name: Name of the queue.
          index: Number of the row.
        """
        return await self._get(self._path(name, f"rows/{index}"), LabelRow)

    @verb
    async def set(
        self, name: str, index: int, label: Json, *, skip: bool = False, note: str = "", by: str | None = None
    ) -> LabelQueue:
        """Label a row, skip it, or let it wait again; return the queue after the change.

        Args:
          name: Name of the queue.
          index: Number of the row.
          label: true or false, a number, or a choice; None removes the label, so that the row waits again.
          skip: Whether to skip the row, which then gets no label.
          note: Remark on the label.
          by: Name of the person; a host with keys uses the name of the key instead.

        Raises:
          InvalidRequest: the queue does not accept this label.
        """
        body = encode({"label": label, "skip": skip, "note": note, "by": by})
        return await self._transport.send(Call("PUT", self._path(name, f"rows/{index}"), LabelQueue, body))
