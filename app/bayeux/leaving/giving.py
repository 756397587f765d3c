"""Yields everything in memory that the store lacks, for the next server."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from holdfast.bayeux.leaving.session_state import is_unstored, state_of
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.state.changed_session import stored_form
from holdfast.bayeux.state.kept_requests import passing_fields
from holdfast.bayeux.state.phase import Phase
from holdfast.delivery.codec.attributes import rows_of_refusals
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.former_attempts import former_of
from holdfast.delivery.messages.given import MOST_SHARED, Given, GivenEntry, GivenKind
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.work import borrowed_of, refusals_of

# How many names one record of the store may have.
_MOST_NAMES: Final = 2000


def given(bayeux: Bayeux, now: float, shown: Mapping[int, str]) -> Iterator[Given]:
    """Yield everything to give. From now on, nothing may change until `take_back`.

    `settle` comes before it.

    Args:
        shown: Up to which place in the log of each other shard sessions here that need no store
            have got everything.
    """
    state, life = bayeux.state, bayeux.life
    state.phase = Phase.LEFT
    yield _server(bayeux, now, shown)
    yield from _replaced(bayeux)
    new = _NewEntries()
    for session in _in_order(life):
        yield _session(life, session, new, now)
    for receiver in state.waiting_places.queues():
        yield Given(GivenKind.QUEUE, receiver.key, {}, _of_shared_queue(receiver))
    for kept in state.histories.channels():
        passing = [GivenEntry(Mark(each.id), each) for each in kept if not each.is_durable]
        yield Given(GivenKind.HISTORY, kept.channel, kept.left(), passing)
    for channel in state.presence.channels():
        members = iter(state.presence.members(channel))
        while part := list(islice(members, _MOST_NAMES)):
            joined = [[member.key, since] for member, since in part]
            about = {"channel": channel, "joined": joined}
            yield Given(GivenKind.PRESENCE, f"{joined[0][1]} {channel}", about)
    for shard, rows in state.presence_events.others.parts(_MOST_NAMES):
        said = {"shard": shard, "rows": rows}
        yield Given(GivenKind.FAR_MEMBERS, f"{shard} {rows[0][1]} {rows[0][0]}", said)
    for fields in passing_fields(state.requests):
        said = {name: value.decode() for name, value in fields.items()}
        yield Given(GivenKind.REQUESTS, next(iter(said)), said)


def _server(bayeux: Bayeux, now: float, shown: Mapping[int, str]) -> Given:
    state = bayeux.state
    fields = {
        "newest": state.node.stamp(),
        "histories": state.histories.left(),
        "newcomers": bayeux.identities.newcomers(now),
        "shown": {str(shard): place for shard, place in shown.items()},
    }
    return Given(GivenKind.SERVER, "", fields)


def _replaced(bayeux: Bayeux) -> Iterator[Given]:
    """Yield the ids of clients whose sessions others have, so that they do not come back."""
    clients = iter(bayeux.state.sessions.replaced().items())
    while part := dict(islice(clients, _MOST_NAMES)):
        yield Given(GivenKind.REPLACED, next(iter(part)), {"browsers": part})


def _in_order(life: SessionLife) -> Iterator[Session]:
    """Yield all sessions. Those without a connection come last, as they are sorted."""
    for session in life.state.sessions:
        if session not in life.unconnected:
            yield session
    yield from life.unconnected.handshaken
    yield from life.unconnected.absent


def _session(life: SessionLife, session: Session, new: "_NewEntries", now: float) -> Given:
    fields: dict[str, Any] = {"left": state_of(life, session, now)}
    if not session.is_durable:
        fields["record"] = stored_form(session, life.state.node.now_ms()).to_json()
    # A session may have become durable later; then the store lacks the earlier messages.
    has_all = session.is_durable and life.is_to_be_durable(session) and not is_unstored(session)
    entries = _tried(session, now, has_all=has_all) if session.queue.count else []
    entries += new.of(session.queue.new, has_all=has_all)
    return Given(GivenKind.SESSION, session.key, fields, entries)


def _tried(session: Session, now: float, *, has_all: bool) -> list[GivenEntry]:
    """Return the entries that were handed over. `has_all`: the store has all durable ones."""
    entries = []
    for entry in session.queue.tried():
        message = entry.message
        is_there = has_all and _is_stored(message)
        more = _more(message, is_there=is_there) | _progress(entry, now)
        entries.append(GivenEntry(entry.mark(), None if is_there else message, more))
    return entries


class _NewEntries:
    """Makes the entries of new messages, mostly once for all queues that have the message."""

    def __init__(self) -> None:
        # By the identity of the message, which is in a queue all the while.
        self._known: dict[int, GivenEntry] = {}
        self._known_if_stored: dict[int, GivenEntry] = {}

    def of(self, messages: Iterable[Message], *, has_all: bool) -> list[GivenEntry]:
        """Return the entries of these messages. `has_all`: the store has all durable ones."""
        known = self._known_if_stored if has_all else self._known
        found = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                if len(known) >= MOST_SHARED:
                    known.clear()
                entry = _new(message, is_there=has_all and _is_stored(message))
                known[id(message)] = entry
            found.append(entry)
        return found


def _is_stored(message: Message) -> bool:
    # The store may have refused a copy from a history.
    return message.is_durable and not message.is_initial


def _new(message: Message, *, is_there: bool) -> GivenEntry:
    more = _more(message, is_there=is_there)
    return GivenEntry(_mark(message), None if is_there else message, more or None)


def _mark(message: Message) -> Mark:
    return Mark(message.id) if former_of(message) is None else Entry(message).mark()


def _progress(entry: Entry, now: float) -> dict[str, Any]:
    """Return what the mark of an entry that was handed over does not say."""
    more: dict[str, Any] = {"ago": now - entry.handed_at}
    if entry.due:
        more["due"] = entry.due - now
    if entry.until:
        more |= {"until": entry.until, "batch": entry.batch}
    if entry.is_pending:
        more["pending"] = True
    if entry.was_alone:
        more["alone"] = True
    return more


def _more(message: Message, *, is_there: bool) -> dict[str, Any]:
    """Return what the record of a message does not say: who refused it, and how it is kept.

    The record of a given message says the latter.
    """
    more: dict[str, Any] = {}
    refusals, keeping = rows_of_refusals(message), message.keeping
    if refusals:
        more["refusals"] = refusals
    borrowed = borrowed_of(message)
    if borrowed is not None:
        more["borrowed"] = [borrowed.home, borrowed.loan_id]
    if is_there and keeping is not None:
        more["keeping"] = keeping.to_row()
    return more


def _of_shared_queue(receiver: Session) -> Sequence[GivenEntry]:
    """Return passing messages of a shared queue, and stored ones that were refused.

    Another shard has those in flight: if it has lost them meanwhile, the next receiver is told.
    """
    queue = receiver.queue
    messages = [*(entry.for_others() for entry in queue.tried()), *queue.new]
    return [
        _new(each, is_there=each.is_durable)
        for each in messages
        if not each.is_durable or refusals_of(each)
    ]
