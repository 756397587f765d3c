"""Publishing in one of several shards: what goes elsewhere, and what one shard cannot do."""

from functools import partial

from holdfast.bayeux.publish.addressed_everywhere import AddressedEverywhere, groups_of
from holdfast.bayeux.publish.addressed_here import AddressedHere
from holdfast.bayeux.publish.at_home import AtHome
from holdfast.bayeux.publish.channel_order import ChannelOrder, Turn
from holdfast.bayeux.publish.event import Encoder, EventPublish
from holdfast.bayeux.publish.made_topics import CountsPort, MadeTopics
from holdfast.bayeux.publish.new_messages import Publishing
from holdfast.bayeux.publish.point_to_point import PointToPoint
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.publish.requests_everywhere import RequestsEverywhere
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import HELD_ROW
from holdfast.delivery.basics.error_codes import CHANNEL_HELD, SHARD_UNREACHABLE
from holdfast.delivery.codec.attributes import Way
from holdfast.delivery.codec.enclosing import enclosed
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.neighbours import Neighbours


class AmongShards(Publishing):
    """Publishes in one of several shards. A server alone does not load this module.

    Args:
        counts: Counts what is here of topics elsewhere.
    """

    def __init__(
        self,
        state: ServerState,
        ptp: PointToPoint,
        encoder: Encoder,
        neighbours: Neighbours,
        *,
        requests: RequestsEverywhere,
        counts: CountsPort,
    ) -> None:
        super().__init__(state, ptp, encoder)
        homes, others = neighbours.homes, neighbours.others
        self._homes, self._others = homes, others
        self._requests = requests
        # What `complete_cursor` returned last.
        self._complete = 0
        here = AddressedHere(state, ptp, requests)
        self._order = ChannelOrder(state)
        self._everywhere = AddressedEverywhere(state, here, self._order)
        self.made = MadeTopics(state, others, self.home_of, counts)
        # Does what other shards ask for.
        self.at_home = AtHome(
            *(state, homes, self._order),
            requests=requests,
            publish_here=partial(self.made.publish, go=self._publish_here),
        )

    def _check_holds(self, publish: EventPublish) -> None:
        channel = publish.channel.name
        is_held = self._others.has_row(HELD_ROW + channel)
        if is_held is None:
            raise Refused(ErrorReply.SHARD_UNAVAILABLE, SHARD_UNREACHABLE.text)
        if is_held:
            raise Refused(ErrorReply.CHANNEL_HELD_BACK, CHANNEL_HELD.text, channel)

    def complete_cursor(self) -> int:
        """Return the cursor up to which no further message of this shard enters a history."""
        if not self._order.waiting:
            # Otherwise a message that has its id already waits for other shards.
            self._complete = self._state.hub.complete_before(self._state.node.stamp())
        return self._complete

    def home_of(self, publish: EventPublish) -> int | None:
        """Return the shard that must publish this; None if this one may. Raises `Refused`."""
        home, qos = self._homes.home_of(publish.channel.name), publish.qos
        if home is None or qos is None:
            return home
        is_work = self._state.rules.of(publish.channel).is_work_queue
        if qos.request is not None:
            # Only one shard hears who may answer: the shard of the requester. Work is with its home
            # until a session has it.
            return home if is_work else None
        concerns_home = qos.is_subscribable or qos.concerns_topic or is_work
        return home if concerns_home else None

    def _publish(self, publish: EventPublish, wire: bytes) -> PersistOutcome | None:
        return self.made.publish(publish, wire, self._publish_at_home)

    def _publish_at_home(self, publish: EventPublish, wire: bytes) -> PersistOutcome | None:
        """Publish an encoded event where its channel has its home. Raises `Refused`."""
        home = self.home_of(publish)
        if home is None:
            return self._publish_here(publish, wire)
        sender, rule = publish.sender, self._state.rules.of(publish.channel)
        echoes = sender is None or self._echoes(rule, sender)
        return self.at_home.send(publish, wire, home, echoes=echoes)

    def _publish_here(self, publish: EventPublish, wire: bytes) -> PersistOutcome | None:
        return super()._publish(publish, wire)

    def _distribute(self, publish: EventPublish, qos: Qos | None) -> PersistOutcome | None:
        self.select(publish)
        if qos is not None and qos.destinations:
            groups = groups_of(qos.destinations, self._homes)
            if qos.request is not None and not qos.is_subscribable:
                qos.request.unheard = tuple(shard for shard in groups if shard is not None)
            if any(shard is not None for shard in groups):
                return self._everywhere.publish(publish, qos, groups, self._homes)
        channel = publish.channel.name
        if channel not in self._order.waiting:
            return self._distribute_here(publish, qos)
        self._order.take(Turn(channel, partial(self._distribute_later, publish, qos)))
        return None

    def _ask_one(self, publish: EventPublish, qos: Qos) -> PersistOutcome | None:
        """Publish a request for one session here, or for one of another shard."""
        request = qos.request
        publish.addressed, publish.is_subscribable = self._choose(publish), False
        if request is None:
            return self._state.hub.publish(publish)
        if publish.addressed:
            request.unheard = ()
            return self._state.hub.publish(publish)
        asking = {"enclosed": [publish.message], "persistent": publish.persistent}
        if request.is_durable:
            request.carried = enclosed(asking, Way.CALL)
        outcome = self._state.hub.publish(publish)
        if outcome is not PersistOutcome.REFUSED:
            self._requests.asking.ask_one(request, asking)
        return outcome

    def _distribute_later(self, publish: EventPublish, qos: Qos | None, _: Turn) -> bool:
        try:
            outcome = self._distribute_here(publish, qos)
        except Refused as refused:
            publish.refused, outcome = refused, PersistOutcome.REFUSED
        if outcome is not None and publish.done is not None:
            publish.done(outcome)
        return True
