"""Gives what is in the books the times that the server noted for it.

Only the server knows when exactly it did something. Its journal says so, event by event, and the
clients say between which moments it must have been. So each event about a copy has to belong to one
entry of the books, each entry to one event, and the event's time has to be within the bounds of the
entry; what reports say of these times can then be computed, to the microsecond.

The events are unfolded one by one, as no part of the pipeline does it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from holdfast.journal.frame import decode
from holdfast.journal.schema import Event, Kind
from holdfast.journal.unfold import unfold
from holdfast.pipeline.source.readers import Readers
from holdfast.pipeline.source.streams import Journals
from tests.pipeline.bookkeeping.ledger import Contact, Copy, End, Ledger, Noted, Span
from tests.pipeline.journals import Writer
from tests.store.servers import ValkeyServer

NODE = "holdfast"
_HANDED = (Kind.HANDED, Kind.REDELIVERED, Kind.WRITTEN)
_ENDED = (Kind.ACKED, Kind.WRITTEN, Kind.DEAD, Kind.EXPIRED, Kind.DISCARDED)
_LOSSES = ("polling", "dead", "left", "expired", "taken_over", "given_up")

Key = tuple[Any, ...]


def keep_frames(store: ValkeyServer) -> None:
    """Be a reader of the journal that has read nothing: the server keeps all frames."""
    Readers(Journals(store.url, NODE)).report("books", "the books of a test", {})


def events_of(store: ValkeyServer) -> list[Event]:
    """Return all events, in the order of the journal."""
    frames = store.ask("XRANGE", Writer(store, NODE).stream, "-", "+")
    assert frames
    return [event for _, fields in frames for event in unfold(decode(fields[b"frame"]))]


def stamp(books: Ledger, events: Sequence[Event]) -> None:
    """Replace bounds by times; forget what a killed server never wrote."""
    starts = [event.ts for event in events if (event.kind, event.what) == (Kind.NODE, "start")]
    _stamp_copies(books.copies, events)
    for copy in books.copies:
        if copy.end is End.LOST:
            [copy.ended] = [Span.at(us) for us in starts if us in _known(copy.ended)]
    books.contacts = [*_contacts(books.contacts, events)]
    _stamp_steps(books, events)
    books.noted = [*_refusals(books, events, starts)]
    books.about_messages_us = [event.ts for event in events if event.msg is not None]


class _Events:
    """The events of some kinds, each of which is taken once."""

    def __init__(
        self, events: Iterable[Event], kinds: Sequence[str], key: Callable[[Event], Key]
    ) -> None:
        self._waiting: dict[Key, list[Event]] = defaultdict(list)
        for event in events:
            if event.kind in kinds:
                self._waiting[key(event)].append(event)

    def take(self, key: Key, bounds: Span) -> Event:
        """Take the next event of this key, which has to be within these bounds."""
        assert self._waiting[key], (key, bounds)
        event = self._waiting[key].pop(0)
        assert event.ts in bounds, (event, bounds)
        return event

    def is_next(self, key: Key, bounds: Span) -> bool:
        return bool(self._waiting[key]) and self._waiting[key][0].ts in bounds

    def check_taken(self) -> None:
        """Nothing is left that no entry of the books is about."""
        assert [event for left in self._waiting.values() for event in left] == []


def _of_copy(event: Event) -> Key:
    return event.msg, event.receiver


def _known(span: Span | None) -> Span:
    assert span is not None
    return span


def _stamp_copies(copies: Sequence[Copy], events: Sequence[Event]) -> None:
    kinds = (_HANDED, [Kind.REFUSED], _ENDED, [Kind.REPLAYED])
    parts = [_Events(events, each, _of_copy) for each in kinds]
    handed, refused, ended, replayed = parts

    def at(of: _Events, key: Key, bounds: Span) -> Span:
        return Span.at(of.take(key, bounds).ts)

    for copy in copies:
        for stay in copy.stays:
            key = copy.message.id, stay.receiver
            stay.hand_overs = [at(handed, key, span) for span in stay.hand_overs]
            stay.refusals = [
                each._replace(span=at(refused, key, each.span)) for each in stay.refusals
            ]
        if copy.replayed is not None:
            key = copy.message.id, copy.stays[0].receiver
            copy.replayed = at(replayed, key, copy.replayed)
        if copy.end not in (None, End.LOST):
            key = copy.message.id, copy.receiver
            copy.ended = at(ended, key, _known(copy.ended))
        if copy.death is not None:
            copy.death = copy.death._replace(span=_known(copy.ended))
    for part in parts:
        part.check_taken()


def _contacts(contacts: Sequence[Contact], events: Sequence[Event]) -> Iterator[Contact]:
    """Yield those that were written."""
    losses = _Events(
        (event for event in events if event.what in _LOSSES),
        (Kind.SESSION, Kind.DISPATCHER),
        lambda event: (event.receiver, event.what),
    )
    for each in contacts:
        key = each.receiver, each.what
        if each.is_sure or losses.is_next(key, each.span):
            yield each._replace(span=Span.at(losses.take(key, each.span).ts))
    losses.check_taken()


def _stamp_steps(books: Ledger, events: Sequence[Event]) -> None:
    """Replace how long requests took by how long the server says it was."""
    kinds = (Kind.REQUEST, Kind.REPLY)
    happened = _Events(events, kinds, lambda event: (event.channel, event.what))
    steps = []
    for step in books.steps:
        event = happened.take((step.channel, step.what), step.span)
        if step.took is not None:
            assert event.number is not None
            assert event.number in step.took, (step, event)
            step = step._replace(took=Span.at(event.number))
        steps.append(step)
    books.steps = steps
    happened.check_taken()


def _refusals(books: Ledger, events: Sequence[Event], starts: Sequence[int]) -> Iterator[Noted]:
    """Yield the numbers of refused publishes, with the times at which they were written.

    A server adds up what it refuses within a minute, and forgets it if it is killed.
    """
    since: dict[Key, int] = {}
    for event in events:
        if event.kind != Kind.PUBLISHES_REFUSED:
            continue
        key = event.what, event.channel
        began = max(us for us in starts if us <= event.ts)
        known = [each.span for each in books.refused if (each.reason, each.channel) == key]
        begin = max(began, since.get(key, 0))
        sure = sum(begin < each.since_us and each.until_us < event.ts for each in known)
        maybe = sum(each.until_us > begin and each.since_us < event.ts for each in known)
        number = event.number or 0
        assert sure <= number <= maybe, (event, known)
        since[key] = event.ts
        yield Noted(str(event.what), event.channel, number, event.ts)
