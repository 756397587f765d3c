"""The resource of delayed messages, and cancelling them."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from holdfast.delivery.basics.json_text import part
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.shared_queues.delayed_publish import publish_in
from holdfast.delivery.shared_queues.delays import Delayed, delays_of
from holdfast.store.format.operator_input import Count, Ms
from holdfast.web.admin.changes import RunningServer, check_cursor
from holdfast.web.admin.faults import UNKNOWN, RequestFailed
from holdfast.web.admin.fields import Cursor, Limit, MessageId
from holdfast.web.admin.route import route
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
from holdfast.web.admin.views import Page, view_of

_PATH = "/delayed"
_CURSOR = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")
# Larger data is not shown.
_LARGEST = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedMessage:
    """A message that waits until it is due."""

    id: Annotated[str, Field(description="As in the reply to its publish.")]
    due: Annotated[Ms, Field(description="When it will be published.")]
    accepted: Ms
    channel: str
    sender: Annotated[str, Field(description="The publisher; empty for the server.")]
    priority: Annotated[int, Field(ge=0, le=9)]
    bytes: Annotated[Count, Field(description="How much of the limit it takes.")]
    durable: Annotated[bool, Field(description="Survives a restart.")]
    data: Annotated[Any, Field(description="Null if `is_cut`.")]
    is_cut: Annotated[bool, Field(description="`data` is beyond 64 KiB and left out.")]


@dataclass(frozen=True, slots=True)
class _Row:
    """What the list is sorted by, without the data."""

    id: str
    due: int
    accepted: int
    channel: str
    sender: str
    priority: int
    bytes: int
    durable: bool
    delayed: Delayed


class DelayedResource:
    """Answers requests about delayed messages; cancelling is audited."""

    def __init__(self, server: RunningServer) -> None:
        state = server.life.state
        self._server = server
        self._node = state.node
        self._delays = delays_of(state.waiting_places)

    def _rows(self) -> Stretches[_Row]:
        return stretches_of(self._delays.waiting(), self._row)

    @route("GET", _PATH)
    @sortable("id", _rows, lambda self, row: self._view(row.delayed))
    async def delayed(self, cursor: Cursor = None, limit: Limit = 100) -> Page[DelayedMessage]:
        """List messages that wait until they are due: those due first, or sorted by a field."""
        check_cursor(_CURSOR, cursor)
        due_ms, _, id = (cursor or "0-0").partition("-")
        last = int(due_ms), int(id)
        rest = (each for each in self._delays.waiting() if each[:2] > last)
        found = list(islice(rest, limit + 1))
        after = f"{found[limit - 1].due_ms}-{found[limit - 1].id}" if len(found) > limit else None
        return Page([self._view(each) for each in found[:limit]], after)

    @route("DELETE", _PATH)
    async def cancel_delayed(self, id: MessageId, who: str) -> None:
        """Discard a delayed message before it is due."""
        async with self._server.change(who, "delayed.cancel", id) as detail:
            name, _, number = id.rpartition("-")
            is_ours = name == self._node.deployment
            found = self._delays.cancel(int(number)) if is_ours else None
            if found is None:
                raise RequestFailed(UNKNOWN, f"{id} is not a message that waits until it is due")
            detail["channel"] = found.message.channel

    def _row(self, delayed: Delayed) -> _Row:
        return view_of(_Row, delayed.message, **self._facts(delayed), delayed=delayed)

    def _view(self, delayed: Delayed) -> DelayedMessage:
        message = delayed.message
        is_cut = len(message.wire) > _LARGEST
        return view_of(
            DelayedMessage,
            message,
            **self._facts(delayed),
            data=None if is_cut else part(publish_in(message).event.get("data")),
            is_cut=is_cut,
        )

    def _facts(self, delayed: Delayed) -> dict[str, Any]:
        message = delayed.message
        return {
            "id": self._node.id_of(message.id),
            "due": delayed.due_ms,
            "accepted": message.id // NS_PER_MS,
            "bytes": len(message.wire),
            "durable": message.is_durable,
        }
