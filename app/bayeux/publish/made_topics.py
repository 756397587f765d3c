"""Topics that publishes make of channels among several shards, although no rule calls them topics.

Such a channel gets a home. Before a shard sends the first message there, all others know that the
channel is a topic, and have taken what this shard published on it before: so each publisher's
messages keep their order, and from then on all go to the home.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from holdfast.bayeux.publish.channel_order import ChannelOrder, Turn
from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.qos import Qos, key_of
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import Kind
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.other_shards import OthersPort

# After this time, nothing of a publish is on its way any more. How often topics are forgotten.
_CLEAN_S: Final = 60.0

# Returns the shard that must publish this; None if this one may. Raises `Refused`.
HomeOf = Callable[[EventPublish], int | None]

# Publishes an encoded event in this shard, or sends it to the home of its channel. Raises
# `Refused`. Returns the outcome, or None if the publish is told later.
Go = Callable[[EventPublish, bytes], PersistOutcome | None]


class CountsPort(Protocol):
    """Counts what this shard has of topics about which other shards decide."""

    def begin(self, names: Iterable[str], /) -> None:
        """Count what was restored of these topics."""
        ...

    def learned(self, names: Iterable[str], /) -> None:
        """Take note that these channels have become topics."""
        ...

    def forget(self, name: str, /) -> None:
        """Take note that a channel here is no topic any more."""
        ...


class MadeTopics:
    """Lets publishes wait until all shards know that their channel is a topic."""

    def __init__(
        self, state: ServerState, others: OthersPort, home_of: HomeOf, counts: CountsPort
    ) -> None:
        self._state = state
        self._others = others
        self._home_of = home_of
        self._order = ChannelOrder(state)
        # Topics that this shard tells the others, and whether each has had no publish for a while.
        self._told: dict[str, bool] = {}
        # The ones that all others know.
        self._known: set[str] = set()
        # Topics that others tell: seen by the last cleaning, and by an earlier one.
        self._seen: set[str] = set()
        self._old: set[str] = set()
        self._clean_at = 0.0
        self._counts = counts

    # The life of this shard

    def begin(self, told: Iterable[str] = ()) -> None:
        """Tell the topics that were restored, before clients come.

        Those that an earlier process `told` are told for a while, too: it may have sent a publish
        to a home that has not taken it yet, and its repeat must go there.
        """
        topics = self._state.topics
        for topic in topics:
            if self._state.rules.topic(topic.name) is None:
                self._tell(topic.name)
                self._known.add(topic.name)
        for name in told:
            if name not in self._told and self._state.rules.topic(name) is None:
                self._tell(name)
        # What an earlier process published before is behind its messages of the topic.
        self._old = {*self._others.topics}
        self._take(self._old)
        if self._old:
            self._counts.begin(self._old)

    def learned(self, names: Sequence[str]) -> None:
        """Take note that others call these channels topics."""
        # They may have been topics before, and then none.
        self._old.difference_update(names)
        self._seen.difference_update(names)
        self._take(names)

    def _take(self, names: Collection[str]) -> None:
        if names:
            self._state.topics.are_used = True
            # Their homes may keep messages of them.
            self._state.keep_history()
            self._counts.learned(names)

    def tick(self, now: float, _: int) -> None:
        """Forget topics that have ended."""
        if now < self._clean_at:
            return
        self._clean_at = now + _CLEAN_S
        for name, is_idle in [*self._told.items()]:
            if is_idle and not self._is_used(name):
                del self._told[name]
                self._known.discard(name)
                self._others.tell_topic(name, False)
                self._counts.forget(name)
            else:
                self._told[name] = True
        told = {*self._others.topics}
        self._old, self._seen = self._seen & told, told

    def _is_used(self, name: str) -> bool:
        state = self._state
        is_here = state.topics.get(name) is not None
        return is_here or name in self._order.waiting or state.hub.is_coming(name)

    # Publishes

    def publish(self, publish: EventPublish, wire: bytes, go: Go) -> PersistOutcome | None:
        """Publish now, or when all others know that the channel is a topic. Raises `Refused`."""
        qos, name = publish.qos, publish.channel.name
        if not (self._told or self._others.topics or (qos is not None and qos.configures)):
            return go(publish, wire)
        if qos is not None and qos.request is not None and qos.topic is not None:
            return self._make_first(publish, wire, go)
        if name not in self._order.waiting:
            if not self._may_go(publish):
                self._check_room(name)
            elif self._key_of(publish) is None:
                return go(publish, wire)
        waiting = _Waiting(publish, wire, go)
        refuse = partial(_refuse, publish, _unreachable())
        self._order.take(Turn(name, partial(self._begin, waiting), refuse))
        return None

    def _may_go(self, publish: EventPublish) -> bool:
        """Return whether nothing of this shard is on its way past the home of the channel."""
        name = publish.channel.name
        if name in self._told:
            self._told[name] = False
            return name in self._known
        qos = publish.qos
        if qos is not None and qos.configures and publish.channel.kind is Kind.BROADCAST:
            return self._state.rules.of(publish.channel).topic is not None
        return name not in self._others.topics or name in self._old

    def _begin(self, waiting: "_Waiting", turn: Turn) -> bool:
        if self._may_go(waiting.publish):
            return self._begin_known(waiting, turn)
        name = turn.channel
        try:
            self._check_room(name)
        except Refused as refused:
            _refuse(waiting.publish, refused)
            return True
        if name not in self._told:
            self._tell(name)
        self._others.when_topic_known(name, partial(self._heard, waiting, turn))
        return False

    def _check_room(self, name: str) -> None:
        """Raise `Refused` if the shard would tell too many topics that no other one tells."""
        is_new = name not in self._told and name not in self._others.topics
        if is_new and len(self._told) >= self._state.options.max_topics:
            raise Refused(ErrorReply.TOPICS_USED_UP, "resource.exhaust", name)

    def _tell(self, name: str) -> None:
        self._told[name] = False
        self._state.topics.are_used = True
        self._others.tell_topic(name, True)

    def _heard(self, waiting: "_Waiting", turn: Turn, is_known: bool) -> None:
        """Go on at the end of the turn: it may be the one in which the publish came."""
        step = partial(self._go_on, waiting, turn, is_known=is_known)
        self._state.backlog.at_turn_end(step)

    def _go_on(self, waiting: "_Waiting", turn: Turn, now: float, *, is_known: bool) -> None:
        is_over = True
        if is_known:
            # It is not forgotten while a publish waits.
            self._known.add(turn.channel)
            is_over = self._begin_known(waiting, turn)
        else:
            _refuse(waiting.publish, _unreachable())
        if is_over:
            self._order.over(turn, is_lost=not is_known)

    def _carry_out(self, waiting: "_Waiting") -> None:
        """Publish later than the publish came, and tell the publisher the outcome."""
        publish = waiting.publish
        try:
            outcome = waiting.go(publish, waiting.wire)
        except Refused as refused:
            _refuse(publish, refused)
            return
        if outcome is not None:
            publish.over(outcome)

    # Publish keys

    def _key_of(self, publish: EventPublish) -> PublishKey | None:
        """Return the key of a publish that may have been carried out here, before the topic."""
        name, qos = publish.channel.name, publish.qos
        is_made = name in self._told or name in self._others.topics
        if not is_made or qos is None or self._home_of(publish) is None:
            return None
        if qos.promised is not None:
            return qos.promised.key
        key, sender = qos.key, publish.sender
        return None if key is None or sender is None else key_of(sender, key)

    def _begin_known(self, waiting: "_Waiting", turn: Turn) -> bool:
        """Begin a publish of which all know where it goes. Returns whether it is over."""
        key = self._key_of(waiting.publish)
        if key is None:
            self._carry_out(waiting)
            return True
        self._others.find_key(key.digest, partial(self._found, waiting, turn))
        return False

    def _found(self, waiting: "_Waiting", turn: Turn, first: int | None) -> None:
        """Publish a message, unless the store has an earlier one with its key."""
        publish = waiting.publish
        if first is None:
            publish.over(PersistOutcome.REFUSED)
        elif first and publish.qos is not None:
            repeat = Message(b"", id=first, channel=turn.channel)
            publish.qos.qualify(repeat, publish.sender)
            publish.over(PersistOutcome.REPEATED)
        else:
            self._carry_out(waiting)
        self._order.over(turn)

    # Requests, which do not concern the topics of their channels

    def _make_first(self, publish: EventPublish, wire: bytes, go: Go) -> PersistOutcome | None:
        """Let the home make the topic that a request asks for, and then publish the request."""
        qos, channel = publish.qos or Qos(), publish.channel
        options, qos.topic = qos.topic, None
        makes = Qos(topic=options, is_administrative=True, only_makes=True)
        event = {"channel": channel.name, "data": None}
        making = EventPublish(channel, event, publish.now, sender=publish.sender, qos=makes)
        making.done = partial(self._has_made, making, _Waiting(publish, wire, go))
        outcome = self.publish(making, to_json(event), go)
        if outcome is PersistOutcome.KEPT:
            return self.publish(publish, wire, go)
        return outcome

    def _has_made(self, making: EventPublish, waiting: "_Waiting", outcome: PersistOutcome) -> None:
        if outcome is PersistOutcome.KEPT:
            self._carry_out(waiting._replace(go=partial(self.publish, go=waiting.go)))
        else:
            waiting.publish.refused = making.refused
            waiting.publish.over(outcome)


class _Waiting(NamedTuple):
    """A publish that waits."""

    publish: EventPublish
    wire: bytes
    go: Go


def _refuse(publish: EventPublish, refused: Refused) -> None:
    publish.refused = refused
    publish.over(PersistOutcome.REFUSED)


def _unreachable() -> Refused:
    return Refused(ErrorReply.SHARD_UNAVAILABLE, SHARD_UNREACHABLE.text)
