"""Restores the entries of a queue from what was given and what the store has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.restoring import may_have
from holdfast.delivery.codec.attributes import refusals_in
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.given import GivenEntry
from holdfast.delivery.messages.keeping import Keeping
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.work import Borrowed, make_work

_NOTHING: Mapping[str, Any] = {}


def fill(
    life: SessionLife,
    session: Session,
    given: Iterable[GivenEntry],
    stored: Iterable[tuple[Mark, Message]],
    *,
    now: float,
) -> tuple[list[int], list[Message]]:
    """Restore the queue of a session in the order in which it was.

    Returns the ids of messages that the store should have, but has not, and the messages that the
    session may not have.
    """
    queue = session.queue
    kept = {mark.id: message for mark, message in stored}
    missing: list[int] = []
    withheld: list[Message] = []
    new: list[Message] = []
    # Most messages of a queue are of few channels.
    may: dict[str, bool] = {}
    for entry in given:
        mark, message, more = entry
        if kept:
            message = kept.pop(mark.id, message)
        if message is None:
            missing.append(mark.id)
            continue
        is_allowed = may.get(message.channel)
        if is_allowed is None:
            is_allowed = may[message.channel] = may_have(session, message.channel)
        if not is_allowed:
            withheld.append(message)
        elif mark.position:
            _put_back(session, message, entry, now)
        else:
            if more is not None:
                _restore(message, more)
            new.append(mark.with_former(message))
    queue.restore_new(new)
    if kept:
        withheld += _insert_late(
            session, [(mark, each) for mark, each in stored if mark.id in kept]
        )
    life.state.counters.restored += queue.count
    return missing, withheld


def _insert_late(session: Session, late: Iterable[tuple[Mark, Message]]) -> list[Message]:
    """Add messages that came too late for their publishers, who do not know whether they came.

    Returns those that the session may not have.
    """
    withheld = []
    for mark, message in late:
        if may_have(session, message.channel):
            session.queue.insert(mark.with_former(message))
        else:
            withheld.append(message)
    return withheld


def _put_back(session: Session, message: Message, given: GivenEntry, now: float) -> None:
    """Restore an entry that was handed over."""
    mark, more = given.mark, given.more or _NOTHING
    _restore(message, more)
    entry = Entry(message, abs(mark.seq), batch=more.get("batch", mark.batch))
    entry.place = mark.position
    entry.until = more.get("until", 0)
    entry.attempts, entry.redelivered = mark.attempts, mark.redelivered
    entry.trail = mark.trail
    entry.is_in_flight = mark.is_in_flight
    entry.is_pending = "pending" in more
    entry.was_alone = "alone" in more
    entry.handed_at = now - more.get("ago", 0.0)
    entry.due = now + more["due"] if "due" in more else 0.0
    session.queue.restore_entry(entry)


def waiting(given: Iterable[GivenEntry], stored: Mapping[int, Message]) -> Sequence[Message]:
    """Return messages of a shared queue, with attempts and refusals."""
    found = []
    for mark, message, more in given:
        message = stored.get(mark.id) if message is None else message
        if message is not None:
            _restore(message, more or _NOTHING)
            found.append(mark.with_former(message))
    return found


def _restore(message: Message, more: Mapping[str, Any]) -> None:
    """Restore who refused work, which shard has it, and how a history keeps a stored message."""
    if "keeping" in more:
        message.keeping = Keeping.of_row(more["keeping"])
    if "refusals" in more:
        make_work(message, refusals_in(more["refusals"]))
    if "borrowed" in more:
        Borrowed(*more["borrowed"]).mark(message)
