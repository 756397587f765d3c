"""A picture of all that a server has: the next one must have the same."""

from math import inf
from typing import Any

from holdfast.bayeux.leaving.table import TABLE, Fate
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.cursors import cursors_of
from holdfast.bayeux.state.subscription_details import lost_subscriptions, qos_of_subscriptions
from holdfast.bayeux.wire.identity import Identity
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.former_attempts import FormerAttempts, former_of
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.requests import stored_fields
from holdfast.delivery.requests.reply_channels import reply_channel_of
from holdfast.delivery.settling.hand_overs import last_attempt_of
from holdfast.delivery.shared_queues.delays import delays_of
from holdfast.delivery.shared_queues.work import refusals_of
from tests.unit.bayeux.harness import Server

# Moments by the clock of a process.
_MOMENTS = {
    *("deadline", "since", "due", "handed_at", "ends_at", "lazy_due"),
    *("newcomer_since", "first_connect"),
}
# They are looked at by what they have.
_OPENED = {"queue", "identity", "dispatcher", "records", "carrier", "message"}
_QUEUE = {"new", "_fresh", "_handed", "returned"}

Picture = dict[str, Any]


def written(kind: type) -> list[str]:
    """The attributes of objects of this class that are written."""
    found = [each for row in TABLE if row.fate is Fate.WRITTEN for each in row.of]
    return [each.partition(".")[2] for each in found if each.startswith(f"{kind.__name__}.")]


def _values(of: object, kind: type, now: float) -> Picture:
    found = {}
    for name in written(kind):
        value = getattr(of, name)
        if name in _MOMENTS and value and abs(value) < inf:
            value = round(value - now, 6)
        if name not in _OPENED | _QUEUE:
            found[name] = value
    return found


def message(of: Message) -> Picture:
    found = {name: getattr(of, name) for name in written(Message) if name not in _OPENED}
    found["addressed"] = list(of.addressed)
    found["former"] = _former(former_of(of))
    found["refusals"] = list(refusals_of(of))
    return found | {"wire": of.wire}


def _former(of: FormerAttempts | None) -> object:
    return None if of is None else (of.attempts, of.redelivered, of.trail, of.was_alone)


def _entry(of: Entry, now: float) -> Picture:
    # The attempts in other queues are those of the entry now.
    return {
        **_values(of, Entry, now),
        "message": message(of.message) | {"former": None},
    }


def _queue(of: CallbackQueue, now: float) -> Picture:
    # The class that has these slots.
    in_flight = CallbackQueue.__mro__[1]
    return {
        **_values(of, in_flight, now),
        "handed": [_entry(each, now) for each in of.in_flight().values()],
        "returned": [_entry(each, now) for each in of.returned.values()],
        "new": [message(each) for each in of.new],
        "sums": (of.count, of.size, of.settling, of.gives_verdicts, of.has_former),
        "expiring": [each.id for each in of.expiring or ()],
        "last": last_attempt_of(of),
    }


def session(of: Session, now: float) -> Picture:
    cursors, replies = cursors_of(of), reply_channel_of(of)
    return {
        **_values(of, Session, now),
        **_values(of, Session.__mro__[1], now),
        # As far as they matter after the handshake.
        "terms": of.terms and (of.terms.to_json(), of.terms.is_granted),
        "identity": _values(of.identity, Identity, now),
        "queue": _queue(of.queue, now),
        "dispatcher": of.dispatcher and _values(of.dispatcher, Dispatcher, now),
        "cursors": cursors and (cursors.form.has_replay_ids, cursors.promised),
        "replies": replies and (replies.name, replies.serials()),
        "lost": dict(lost_subscriptions(of)),
        "qos": dict(qos_of_subscriptions(of)),
        "extensions": [type(each) for each in of.extensions],
        "decorators": [type(each) for each in of.decorators],
        # Clients with acks say it themselves.
        "reply is lost": of.queue.settling is SettledBy.VERDICT
        and of.carrier is not None
        and of.carrier.is_lost(),
        "absent": of.is_absent,
    }


def picture(server: Server) -> Picture:
    """Everything that the next server must have."""
    state, now = server.bayeux.state, server.now
    unconnected = server.bayeux.life.unconnected
    return {
        "sessions": {each.key: session(each, now) for each in state.sessions},
        "queues": {
            each.key: [message(one) for one in each.queue.new]
            for each in state.waiting_places.queues()
        },
        "delays": [(each.due_ms, each.id) for each in delays_of(state.waiting_places).waiting()],
        "histories": {
            each.channel: (each.floor, [message(one) for one in each])
            for each in state.histories.channels()
        },
        "order of histories": [each.id for each in state.histories],
        "floor": state.histories.left(),
        "presence": {
            channel: [(each.key, since) for each, since in state.presence.members(channel)]
            for channel in state.presence.channels()
        },
        "requests": {
            each.address: (
                stored_fields.asked(each, sorted(each.responders)),
                each.spoken,
                each.is_kept,
                each.replies,
            )
            for each in state.requests.by_message().values()
        },
        "unconnected": (
            [each.key for each in unconnected.handshaken],
            [each.key for each in unconnected.absent],
        ),
        "replaced": list(state.sessions.replaced().items()),
        "durables": state.hub.durables,
        "routes": sorted(
            (name, each.key) for each in state.sessions for name in each.subscriptions
        ),
    }


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two pictures differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other}, key=str)
        pairs = [(name, one.get(name, "none"), other.get(name, "none")) for name in names]
    elif (
        isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other)
    ):
        pairs = [(str(at), *pair) for at, pair in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [f"{at}: {one!r} instead of {other!r}"]
    return [each for name, a, b in pairs for each in differences(a, b, f"{at}/{name}")]
