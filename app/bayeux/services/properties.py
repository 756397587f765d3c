"""The tables of all administrative commands, by level: values, settings, operations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Generic, TypeVar

import orjson

from holdfast.bayeux.services.command_scope import CommandScope
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions import interventions
from holdfast.bayeux.sessions.status import (
    created_ms,
    expires_ms,
    first_entries,
    hold_of,
    is_stalled,
    limits,
    since_ms,
)
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.topics.configured import Topic

# The most queue entries that one command shows, and their bytes if it shows more than one.
MAX_ENTRIES = 1000
_MAX_BYTES = 1024**2
# xmlBlaster's run levels; at all others, the server does not answer.
_RUNNING, _STOPPING = 9, 6


@dataclass(frozen=True, slots=True)
class QueueQuery:
    """The number of entries to read from a queue, and how long to wait for them."""

    max_entries: int = 1
    consumable: bool = False
    waiting_delay_ms: int = 0


class ValueForm(Enum):
    """The argument behind a property's `=`."""

    NOTHING = "empty"
    BOOLEAN = "true or false"
    COUNT = "one number, 0 or more"
    CHANNEL = "one channel or pattern"
    QUERY = "any of maxEntries=, maxSize=, consumable= and waitingDelay="


Value = str | int | bool | None | Sequence[str]
Argument = bool | int | str | QueueQuery | None
# The object of a level; of a node, none.
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class Reading(Generic[Seen]):
    """A value that can be read."""

    read: Callable[[CommandScope, Seen], Value]
    # Whether it has a value for a subject of which the server knows nothing.
    is_of_anybody: bool = False


@dataclass(frozen=True, slots=True)
class Setting(Generic[Seen]):
    """A value that can be read and set."""

    read: Callable[[CommandScope, Seen], Value]
    # Called with the argument and the operator's name.
    set: Callable[[CommandScope, Seen, Any, str], None]
    takes: ValueForm


@dataclass(frozen=True, slots=True)
class Action(Generic[Seen]):
    """An action; its value says what it did."""

    do: Callable[[CommandScope, Seen, Any, str], Value]
    takes: ValueForm = ValueForm.NOTHING


@dataclass(frozen=True, slots=True)
class Listing(Generic[Seen]):
    """The first entries of a queue; the query may also remove them."""

    list: Callable[[CommandScope, Seen, QueueQuery], Sequence[Json]]
    takes: ValueForm


Property = Reading[Seen] | Setting[Seen] | Action[Seen] | Listing[Seen]


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject, perhaps without sessions."""

    name: str
    sessions: Sequence[Session]


def _date(ms: int | None) -> str:
    return "" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(" ", "seconds")


def _subjects(at: CommandScope) -> list[str]:
    return sorted({session.subject for session in at.state.sessions})


def _keys(sessions: Iterable[Session]) -> list[str]:
    return sorted(session.key for session in sessions)


def _topics(at: CommandScope) -> list[str]:
    """Return what xmlBlaster calls topics: channels with subscriptions, and topics without any."""
    subscribed = {name for session in at.state.sessions for name in session.subscriptions}
    return sorted(subscribed | {topic.name for topic in at.state.topics})


def _subscriptions(sessions: Iterable[Session]) -> list[str]:
    """Return subscriptions as session name and pattern, which identify them."""
    return sorted(f"{each.name} {channel}" for each in sessions for channel in each.subscriptions)


NODE: Mapping[str, Property[None]] = {
    "aliveCallbackClients": Reading(
        lambda at, _: _keys(
            each for each in at.state.sessions if each.connection_state is DispatcherState.ALIVE
        )
    ),
    "clientList": Reading(lambda at, _: _subjects(at)),
    "clients": Reading(lambda at, _: _subjects(at)),
    "hostname": Reading(lambda at, _: at.process.hostname),
    "instanceId": Reading(lambda at, _: f"/node/{at.node}/instanceId/{at.process.started_ms}"),
    "nodeId": Reading(lambda at, _: at.node),
    "nodeList": Reading(lambda at, _: at.node),
    "numClients": Reading(lambda at, _: len(_subjects(at))),
    "numNodes": Reading(lambda _, __: 1),
    "numPublish": Reading(lambda at, _: at.state.counters.published),
    "numSessions": Reading(lambda at, _: len(at.state.sessions)),
    "numSubscriptions": Reading(
        lambda at, _: sum(len(session.subscriptions) for session in at.state.sessions)
    ),
    "numTopics": Reading(lambda at, _: len(_topics(at))),
    "numUpdate": Reading(lambda at, _: at.state.counters.acked),
    "port": Reading(lambda at, _: at.process.port),
    "runlevel": Reading(lambda at, _: _STOPPING if at.state.is_stopping else _RUNNING),
    "serverTimestamp": Reading(lambda at, _: _date(at.now_ms)),
    "serverTimestampMillis": Reading(lambda at, _: at.now_ms),
    "sessionList": Reading(lambda at, _: _keys(at.state.sessions)),
    "startupDate": Reading(lambda at, _: _date(at.process.started_ms)),
    "subscriptionList": Reading(lambda at, _: _subscriptions(at.state.sessions)),
    "subscriptions": Reading(lambda at, _: _subscriptions(at.state.sessions)),
    "topicList": Reading(lambda at, _: _topics(at)),
    "topics": Reading(lambda at, _: _topics(at)),
    "uptime": Reading(lambda at, _: (at.now_ms - at.process.started_ms) // 1000),
    "version": Reading(lambda at, _: at.process.version),
}


def _begun_ms(subject: Subject) -> int | None:
    """Return when its first session began; None if it has none."""
    return min(map(created_ms, subject.sessions), default=None)


def _uptime_s(at: CommandScope, subject: Subject) -> int | None:
    begun_ms = _begun_ms(subject)
    return None if begun_ms is None else (at.now_ms - begun_ms) // 1000


def _waiting_for(at: CommandScope, subject: Subject) -> int:
    """Return how many messages wait for the subject itself, in no session's queue."""
    receiver = at.state.subjects.queue(subject.name)
    return 0 if receiver is None else receiver.queue.count


SUBJECT: Mapping[str, Property[Subject]] = {
    "creationDate": Reading(lambda _, subject: _date(_begun_ms(subject))),
    "killClient": Action(
        lambda at, subject, _, who: interventions.end_all(at.life, subject.sessions, who, at.now)
    ),
    "maxSessions": Reading(lambda at, _: at.state.options.max_sessions_per_subject),
    "numSessions": Reading(lambda _, subject: len(subject.sessions)),
    "numUpdate": Reading(lambda _, subject: sum(each.acked for each in subject.sessions)),
    "sessionList": Reading(lambda _, subject: _keys(subject.sessions)),
    "sessions": Reading(lambda _, subject: _keys(subject.sessions)),
    "subjectQueueNumMsgs": Reading(_waiting_for, is_of_anybody=True),
    "uptime": Reading(_uptime_s),
}


def _activate(at: CommandScope, session: Session, is_active: bool, who: str) -> None:
    if is_active:
        at.life.resume(session, at.now, who=who)
    elif hold_of(session) is None:
        at.life.hold_back(session, "dispatcherActive=false", who, at.now)


def _activate_channel(at: CommandScope, topic: Topic, is_active: bool, who: str) -> None:
    if is_active:
        at.life.channel_holds.release(topic.name, "operator", who)
    elif not at.state.guard.is_held(topic.name):
        at.life.channel_holds.hold(topic.name, "dispatcherActive=false", who)


def _agreed(at: CommandScope, session: Session) -> str:
    """Return the terms as in the `ext` of a handshake, without the secret."""
    acks = session.queue.settling is SettledBy.BATCH
    delivery = at.life.owner.policy(session) or False
    return to_json({"ack": acks, "delivery": delivery}).decode()


def _entries(at: CommandScope, session: Session, query: QueueQuery) -> Sequence[Json]:
    """Return the first entries as events; they are discarded if the query consumes them."""
    shown: list[Json] = []
    size = 0
    for entry in first_entries(session.queue, query.max_entries):
        size += len(entry.message.wire)
        if shown and size > _MAX_BYTES:
            break
        shown.append(orjson.loads(entry.message.wire))
    if query.consumable:
        interventions.remove_first(at.life, session, len(shown))
    return shown


def _forget_exception(session: Session) -> None:
    session.last_exception = ""


def _max_sessions(at: CommandScope, session: Session) -> int:
    most = at.state.options.max_sessions_per_subject
    return most if session.terms is None else min(most, session.terms.max_sessions)


_ENTRIES = Listing(_entries, ValueForm.QUERY)

SESSION: Mapping[str, Property[Session]] = {
    "aliveSinceDate": Reading(
        lambda at, session: _date(since_ms(at.state.node, session, DispatcherState.ALIVE, at.now))
    ),
    "callbackQueueEntries": _ENTRIES,
    "cbQueueBytes": Reading(lambda _, session: session.queue.size),
    "cbQueueEntries": _ENTRIES,
    "cbQueueMaxMsgs": Reading(lambda at, session: limits(at.state.options, session).entries),
    "cbQueueNumMsgs": Reading(lambda _, session: session.queue.count),
    "clearCallbackQueue": Action(lambda at, session, _, __: at.life.clear(session)),
    "clearLastCallbackException": Action(lambda _, session, __, ___: _forget_exception(session)),
    "connectionState": Reading(lambda _, session: session.connection_state.value),
    "disconnectClientKeepSession": Action(
        lambda at, session, _, __: interventions.send_away(at.life, session, at.now)
    ),
    "dispatcherActive": Setting(
        read=lambda _, session: hold_of(session) is None, set=_activate, takes=ValueForm.BOOLEAN
    ),
    "id": Reading(lambda _, session: session.name),
    "isCallbackConfigured": Reading(lambda _, __: True),
    "isPersistent": Reading(lambda _, session: session.is_durable),
    "isPtpAllowed": Reading(lambda _, session: session.terms is not None and session.terms.ptp),
    "isStalled": Reading(lambda _, session: is_stalled(session)),
    "killSession": Action(
        lambda at, session, _, who: interventions.end(at.life, session, who, at.now)
    ),
    "lastCallbackException": Reading(lambda _, session: session.last_exception),
    "loginDate": Reading(lambda _, session: _date(created_ms(session))),
    "loginName": Reading(lambda _, session: session.subject),
    "maxSessions": Reading(_max_sessions),
    "numCallbackExceptions": Reading(lambda _, session: session.exceptions),
    "numPublish": Reading(lambda _, session: session.published),
    "numSubscribe": Reading(lambda _, session: len(session.subscriptions) + session.unsubscribed),
    "numUnSubscribe": Reading(lambda _, session: session.unsubscribed),
    "numUpdate": Reading(lambda _, session: session.acked),
    "peekCallbackMessages": Listing(_entries, ValueForm.COUNT),
    "pollingSinceDate": Reading(
        lambda at, session: _date(since_ms(at.state.node, session, DispatcherState.POLLING, at.now))
    ),
    "publicSessionId": Reading(lambda _, session: int(session.key.rpartition("/")[2])),
    "qos": Reading(_agreed),
    "refreshSession": Action(
        lambda at, session, _, __: interventions.refresh(at.life, session, at.now)
    ),
    "removeFromCallbackQueue": Action(
        lambda at, session, count, _: interventions.remove_first(at.life, session, count),
        ValueForm.COUNT,
    ),
    "sessionTimeout": Setting(
        read=lambda _, session: 0 if session.terms is None else session.terms.timeout,
        set=lambda at, session, ms, _: interventions.set_timeout(at.life, session, ms, at.now),
        takes=ValueForm.COUNT,
    ),
    "sessionTimeoutExpireDate": Reading(
        lambda at, session: _date(expires_ms(at.state.options, at.state.node, session, at.now))
    ),
    "subscribe": Action(
        lambda at, session, channel, _: interventions.subscribe(at.life, session, channel, at.now),
        ValueForm.CHANNEL,
    ),
    "subscribedTopics": Reading(lambda _, session: sorted(session.subscriptions)),
    "subscriptions": Reading(lambda _, session: _subscriptions([session])),
    "unSubscribe": Action(
        lambda at, session, channel, _: interventions.unsubscribe(
            at.life, session, channel, at.now
        ),
        ValueForm.CHANNEL,
    ),
    "uptime": Reading(lambda at, session: (at.now_ms - created_ms(session)) // 1000),
}

TOPIC: Mapping[str, Property[Topic]] = {
    "destroyDelay": Reading(lambda _, topic: topic.config.destroy_delay_ms),
    "dispatcherActive": Setting(
        read=lambda at, topic: not at.state.guard.is_held(topic.name),
        set=_activate_channel,
        takes=ValueForm.BOOLEAN,
    ),
    "erase": Action(
        lambda at, topic, is_forced, _: at.life.topics.erase(
            topic, is_forced=is_forced, now=at.now
        ),
        ValueForm.BOOLEAN,
    ),
    "isReadonly": Reading(lambda _, topic: topic.config.is_readonly),
    "numOfHistoryEntries": Reading(lambda _, topic: topic.kept),
    "numQueued": Reading(lambda _, topic: topic.queued),
    "numSubscribers": Reading(lambda at, topic: len(at.state.routes.subscribers(topic.name))),
    "state": Reading(lambda _, topic: topic.state.value),
    "stateStr": Reading(lambda _, topic: topic.state.value),
    "subscribers": Reading(lambda at, topic: _keys(at.state.routes.subscribers(topic.name))),
    "uniqueKey": Reading(lambda _, topic: topic.name),
}
