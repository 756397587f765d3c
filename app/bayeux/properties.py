"""What can be asked, set and done with administrative commands, level by level."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Generic, TypeVar

from app.bayeux.codec import Json
from app.bayeux.views import ClientView, NodeView, SessionView

# Entries of a queue that one command shows.
MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class QueueQuery:
    """How much of a queue is asked for, and how long to wait until there is so much."""

    max_entries: int = 1
    consumable: bool = False
    waiting_delay_ms: int = 0


class Takes(Enum):
    """What may stand behind a property's `=`."""

    NOTHING = "nothing"
    BOOLEAN = "true or false"
    COUNT = "one number, from 0 on"
    CHANNEL = "one channel or pattern"
    QUERY = "maxEntries, maxSize, consumable and waitingDelay, each with = and its value"


Value = str | int | bool | None | Sequence[str]
Argument = bool | int | str | QueueQuery | None
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class Reading(Generic[Seen]):
    """A value that can be read."""

    # Gets the time.
    read: Callable[[Seen, int], Value]


@dataclass(frozen=True, slots=True)
class Setting(Generic[Seen]):
    """A value that can be read and set."""

    read: Callable[[Seen, int], Value]
    # Gets the argument, and who asks.
    set: Callable[[Seen, Any, str], None]
    takes: Takes


@dataclass(frozen=True, slots=True)
class Operation(Generic[Seen]):
    """Something to do; its value says what came of it."""

    do: Callable[[Seen, Any, str], Value]
    takes: Takes = Takes.NOTHING


@dataclass(frozen=True, slots=True)
class Listing(Generic[Seen]):
    """The first entries of a queue, perhaps taken out of it."""

    list: Callable[[Seen, QueueQuery, str], Sequence[Json]]
    takes: Takes


Property = Reading[Seen] | Setting[Seen] | Operation[Seen] | Listing[Seen]


def _date(ms: int | None) -> str:
    return "" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(" ", "seconds")


def _entries(session: SessionView, query: QueueQuery, who: str) -> Sequence[Json]:
    if query.consumable:
        return session.take(query.max_entries, who)
    return session.peek(query.max_entries)


_ENTRIES = Listing(_entries, Takes.QUERY)

NODE: Mapping[str, Property[NodeView]] = {
    "aliveCallbackClients": Reading(lambda node, _: node.connected),
    "clientList": Reading(lambda node, _: node.subjects),
    "clients": Reading(lambda node, _: node.subjects),
    "hostname": Reading(lambda node, _: node.hostname),
    "instanceId": Reading(lambda node, _: f"/node/{node.id}/instanceId/{node.started_ms}"),
    "nodeId": Reading(lambda node, _: node.id),
    "nodeList": Reading(lambda node, _: node.id),
    "numClients": Reading(lambda node, _: len(node.subjects)),
    "numNodes": Reading(lambda _, __: 1),
    "numPublish": Reading(lambda node, _: node.published),
    "numSessions": Reading(lambda node, _: len(node.sessions)),
    "numSubscriptions": Reading(lambda node, _: node.subscribed),
    "numTopics": Reading(lambda node, _: len(node.channels)),
    "numUpdate": Reading(lambda node, _: node.acked),
    "port": Reading(lambda node, _: node.port),
    "runlevel": Reading(lambda node, _: node.runlevel),
    "serverTimestamp": Reading(lambda _, now_ms: _date(now_ms)),
    "serverTimestampMillis": Reading(lambda _, now_ms: now_ms),
    "sessionList": Reading(lambda node, _: node.sessions),
    "startupDate": Reading(lambda node, _: _date(node.started_ms)),
    "subscriptionList": Reading(lambda node, _: node.subscriptions),
    "subscriptions": Reading(lambda node, _: node.subscriptions),
    "topicList": Reading(lambda node, _: node.channels),
    "topics": Reading(lambda node, _: node.channels),
    "uptime": Reading(lambda node, now_ms: (now_ms - node.started_ms) // 1000),
    "version": Reading(lambda node, _: node.version),
}

CLIENT: Mapping[str, Property[ClientView]] = {
    "creationDate": Reading(lambda client, _: _date(client.created_ms)),
    "killClient": Operation(lambda client, _, who: client.end(who)),
    "maxSessions": Reading(lambda client, _: client.max_sessions),
    "numSessions": Reading(lambda client, _: len(client.sessions)),
    "numUpdate": Reading(lambda client, _: client.acked),
    "sessionList": Reading(lambda client, _: client.sessions),
    "sessions": Reading(lambda client, _: client.sessions),
    "subjectQueueNumMsgs": Reading(lambda client, _: client.waiting),
    "uptime": Reading(lambda client, now_ms: (now_ms - client.created_ms) // 1000),
}

SESSION: Mapping[str, Property[SessionView]] = {
    "aliveSinceDate": Reading(lambda session, _: _date(session.alive_since_ms)),
    "callbackQueueEntries": _ENTRIES,
    "cbQueueBytes": Reading(lambda session, _: session.bytes),
    "cbQueueEntries": _ENTRIES,
    "cbQueueMaxMsgs": Reading(lambda session, _: session.max_entries),
    "cbQueueNumMsgs": Reading(lambda session, _: session.entries),
    "clearCallbackQueue": Operation(lambda session, _, who: session.clear(who)),
    "clearLastCallbackException": Operation(lambda session, _, __: session.forget_exception()),
    "connectionState": Reading(lambda session, _: session.state),
    "disconnectClientKeepSession": Operation(lambda session, _, __: session.send_away()),
    "dispatcherActive": Setting(
        read=lambda session, _: session.is_active,
        set=lambda session, active, who: session.activate(active, who),
        takes=Takes.BOOLEAN,
    ),
    "id": Reading(lambda session, _: session.name),
    "isCallbackConfigured": Reading(lambda _, __: True),
    "isPersistent": Reading(lambda session, _: session.is_durable),
    "isPtpAllowed": Reading(lambda session, _: session.takes_ptp),
    "isStalled": Reading(lambda session, _: session.is_stalled),
    "killSession": Operation(lambda session, _, who: session.end(who)),
    "lastCallbackException": Reading(lambda session, _: session.last_exception),
    "loginDate": Reading(lambda session, _: _date(session.created_ms)),
    "loginName": Reading(lambda session, _: session.subject),
    "maxSessions": Reading(lambda session, _: session.max_sessions),
    "numCallbackExceptions": Reading(lambda session, _: session.exceptions),
    "numPublish": Reading(lambda session, _: session.published),
    "numSubscribe": Reading(lambda session, _: session.subscribed),
    "numUnSubscribe": Reading(lambda session, _: session.unsubscribed),
    "numUpdate": Reading(lambda session, _: session.acked),
    "peekCallbackMessages": Listing(_entries, Takes.COUNT),
    "pollingSinceDate": Reading(lambda session, _: _date(session.polling_since_ms)),
    "publicSessionId": Reading(lambda session, _: session.number),
    "qos": Reading(lambda session, _: session.qos),
    "refreshSession": Operation(lambda session, _, __: session.refresh()),
    "removeFromCallbackQueue": Operation(
        lambda session, count, who: session.remove(count, who), Takes.COUNT
    ),
    "sessionTimeout": Setting(
        read=lambda session, _: session.timeout_ms,
        set=lambda session, timeout_ms, who: session.set_timeout(timeout_ms, who),
        takes=Takes.COUNT,
    ),
    "sessionTimeoutExpireDate": Reading(lambda session, _: _date(session.expires_ms)),
    "subscribe": Operation(lambda session, channel, _: session.subscribe(channel), Takes.CHANNEL),
    "subscribedTopics": Reading(lambda session, _: session.channels),
    "subscriptions": Reading(lambda session, _: session.subscriptions),
    "unSubscribe": Operation(
        lambda session, channel, _: session.unsubscribe(channel), Takes.CHANNEL
    ),
    "uptime": Reading(lambda session, now_ms: (now_ms - session.created_ms) // 1000),
}
