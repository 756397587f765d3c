"""Derives the values of alerts, in words, from what the server and the pipeline know."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.delivery.basics.node import NS_PER_MS, Node
from holdfast.delivery.shared_queues.work import PREFIX
from holdfast.store.framing.journal_frames import UnreadFrames
from holdfast.units import clock_time, counted
from holdfast.web.admin.alert_limits import Alert
from holdfast.web.admin.alerts import Measured
from holdfast.web.admin.count_window import CountWindow
from holdfast.web.admin.tally import QueueTally, Tally

_MINUTE_S = 60.0
_FIVE_MINUTES_S = 300.0
_NOTHING = Measured(0.0)
# Says what an entry, whose message has this id, waits for, and what to do.
_Words = Callable[[QueueTally, str], tuple[str, str]]
_GROUPS = "holdfast dead list --groups shows their causes"


def of_oldest(tally: Tally, node: Node) -> dict[Alert, Measured]:
    """Return the ages of the oldest entries: for clients that are here, and for others."""
    return {
        Alert.OLDEST: _of_entry(tally.oldest_here, node, _for_those_here),
        Alert.ABSENT: _of_entry(tally.oldest_absent, node, _for_those_away),
    }


def _of_entry(found: QueueTally | None, node: Node, words: _Words) -> Measured:
    if found is None or found.oldest is None:
        return _NOTHING
    published, now_ms = found.oldest.id // NS_PER_MS, node.now_ms()
    reason, next = words(found, node.id_of(found.oldest.id))
    at = clock_time(published, now_ms)
    return Measured(
        now_ms - published, f"a message on {found.oldest.channel} of {at} {reason}", next
    )


def _for_those_here(found: QueueTally, id: str) -> tuple[str, str]:
    receiver = found.receiver
    next = f"holdfast message {id} shows where it is, holdfast now what else waits and why"
    if receiver.subject.startswith(PREFIX):
        return "waits for a worker", f"start a worker; {next}"
    if found.is_oldest_in_flight:
        return f"has not been acknowledged by {receiver.key}", next
    return f"waits for {receiver.key}", next


def _for_those_away(found: QueueTally, id: str) -> tuple[str, str]:
    receiver = found.receiver
    if receiver.has_shared_queue:
        who, clear = receiver.subject, f"holdfast subject clear {receiver.subject}"
        return f"waits for {who}", f"start a client of {who}, or empty the queue: {clear}"
    end = f"holdfast session end {receiver.key}"
    return f"waits for {receiver.key}", f"start its client again, or end the session: {end}"


def of_letters(counts: CountWindow) -> Measured:
    risen = counts.risen(_MINUTE_S)
    letters = round(risen.dead * _MINUTE_S / max(risen.time, _MINUTE_S))
    return Measured(letters, f"{counted(letters, 'dead letter')} within a minute", _GROUPS)


def of_refused(counts: CountWindow, at_least: int) -> Measured:
    risen = counts.risen(_FIVE_MINUTES_S)
    if risen.refused < at_least:
        return _NOTHING
    total = risen.refused + risen.acked
    share = risen.refused / total
    return Measured(
        share,
        f"{share:.0%} of {counted(total, 'message')} were refused within five minutes",
        f"{_GROUPS}; holdfast dispatcher hold SESSION holds a receiver back until it is repaired",
    )


def of_ingest(unread: UnreadFrames | None, now_ms: int) -> Measured:
    """Return how far the tables are behind that are furthest behind."""
    if unread is None:
        return _NOTHING
    return Measured(
        now_ms - unread.since,
        f"the tables {unread.lake} lack what has happened since {clock_time(unread.since, now_ms)}",
        "run holdfast pipeline ingest, or, if nobody fills them any more, holdfast pipeline lake "
        f"drop {unread.lake}",
    )


def of_shards(away_s: Mapping[int, float]) -> Measured:
    """Return for how long the shard is away that has been away for longest."""
    if not away_s:
        return _NOTHING
    shard = max(away_s, key=lambda each: away_s[each])
    return Measured(
        away_s[shard] * 1000,
        f"the worker of shard {shard} cannot be reached: its sessions get 503, all others go on",
        "the log says why it has ended, or that it is silent; the supervisor starts it again",
    )


def of_replicas(complaint: str) -> Measured:
    return Measured(
        1.0 if complaint else 0.0,
        complaint,
        "start the replica, or its machine: the server goes on by itself. To go on without it, set "
        "another durability",
    )


def of_files(faults: Sequence[str]) -> Measured:
    return Measured(
        len(faults),
        "; ".join(faults) and f"what was read before stays in force: {'; '.join(faults)}",
        "correct the file, and holdfast doctor checks it; it is read again by itself, those of TLS "
        "with SIGHUP",
    )


def of_audit(result: Mapping[str, Any] | None, now_ms: int) -> Measured:
    if result is None:
        return _NOTHING
    kinds = {row["kind"]: row["number"] for row in result["rows"]}
    violations = sum(kinds.values())
    at = clock_time(result["at"], now_ms)
    return Measured(
        violations,
        f"the audit of {at} found {counted(violations, 'violation')}: {', '.join(sorted(kinds))}",
        "holdfast pipeline audit lists them",
    )
