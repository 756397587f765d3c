"""The resource of requests that wait for messages of histories."""

from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.state.waiting_readers import WaitingReader
from holdfast.store.format.operator_input import Count, Ms
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
from holdfast.web.admin.views import Page

# How many channels of a reader are shown.
_MOST_CHANNELS = 10


@dataclass(frozen=True, slots=True)
class Reader:
    """A request to `/streams` or `/events` that waits for messages."""

    id: str
    subject: Annotated[str, Field(description="Of its login; empty without one.")]
    address: Annotated[str, Field(description="Of the client; empty for this machine.")]
    live: Annotated[str, Field(description="How it waits: long-poll, sse, or events.")]
    since: Ms
    bytes: Annotated[Count, Field(description="What it was sent.")]
    channels: Annotated[list[str], Field(description="What it reads; the first ten.")]
    more: Annotated[Count, Field(description="How many channels and patterns it reads besides.")]


class ReaderResource:
    """Answers requests about readers."""

    def __init__(self, server: RunningServer) -> None:
        self._readers = server.life.state.readers

    def _all(self) -> Stretches[Reader]:
        return stretches_of(list(self._readers.items()), _view)

    @route("GET", "/readers")
    @sortable("id", _all)
    async def readers(self, cursor: Cursor = None, limit: Limit = 100) -> Page[Reader]:
        """List requests that wait for messages of histories: the first to come, or by a field."""
        rest = (each for each in self._readers.items() if each[0] > (cursor or ""))
        found = [_view(each) for each in islice(rest, limit + 1)]
        return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)


def _view(found: tuple[str, WaitingReader]) -> Reader:
    id, reader = found
    names = [each.name for each in reader.channels]
    shown = names[:_MOST_CHANNELS]
    return Reader(
        id,
        reader.subject,
        reader.caller.address,
        reader.live.value,
        reader.since_ms,
        reader.bytes,
        shown,
        len(names) - len(shown),
    )
