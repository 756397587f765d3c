"""Creates the parts of one server, each with everything that it needs.

`ServerState` creates the parts that need no sessions; the rest follows here, in the order of what
needs what.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.bayeux.expiry.expired_messages import MessageExpiry
from holdfast.bayeux.expiry.session_clock import SessionClock
from holdfast.bayeux.expiry.unconnected import UnconnectedSessions
from holdfast.bayeux.meta.client_verdicts import VerdictHandler
from holdfast.bayeux.meta.reading import ExtReader
from holdfast.bayeux.publish.delaying import add_delays
from holdfast.bayeux.publish.event import Encoder
from holdfast.bayeux.publish.incoming import PublishHandler
from holdfast.bayeux.publish.new_messages import Publishing
from holdfast.bayeux.publish.point_to_point import PointToPoint
from holdfast.bayeux.publish.requests import RequestHandler
from holdfast.bayeux.replies.answers import Answers
from holdfast.bayeux.replies.arrivals import Arrivals
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.services.presence_answers import PRESENCE_SERVICE, PresenceService
from holdfast.bayeux.services.topic_answers import TOPICS, TopicService
from holdfast.bayeux.services.topic_status import TopicStatuses
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.channel_holds import ChannelHolds
from holdfast.bayeux.sessions.claims import Claims
from holdfast.bayeux.sessions.due import DueSessions
from holdfast.bayeux.sessions.ends import SessionEnds
from holdfast.bayeux.sessions.identities import Identities
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.login_events import LoginEvents
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.sessions.probes import Probes
from holdfast.bayeux.sessions.reauthorization import Reauthorizations
from holdfast.bayeux.sessions.slots import SessionSlots
from holdfast.bayeux.sessions.topic_life import TopicLife
from holdfast.bayeux.sessions.unclaimed import UnclaimedSessions
from holdfast.bayeux.state.server_state import RunLater, ServerState
from holdfast.bayeux.streams.history_parts import Streams
from holdfast.bayeux.subscribe.handler import SubscribeHandler
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.settling.attempt_notes import AttemptNotes
from holdfast.delivery.settling.delivery_parts import DeliveryParts
from holdfast.delivery.settling.failures import Failures
from holdfast.delivery.settling.hand_overs import HandOvers
from holdfast.delivery.settling.settlement import Settlement
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.delivery.ports.neighbours import Neighbours


class SettlingParts:
    """Passes the calls of the hub and the shared queues on to parts that are created after them.

    Those parts need the hub and the shared queues: a dead letter is announced, an addressed message
    goes back to its subject. `bind` is called once, before the server gets any message.
    """

    _undelivered: Undelivered[Session]
    _message_expiry: MessageExpiry
    _reauthorizations: Reauthorizations

    def bind(
        self,
        undelivered: Undelivered[Session],
        message_expiry: MessageExpiry,
        reauthorizations: Reauthorizations,
    ) -> None:
        """Set the parts that carry the calls out."""
        self._undelivered = undelivered
        self._message_expiry = message_expiry
        self._reauthorizations = reauthorizations

    def turned_away(self, receivers: Sequence[Session], message: Message, reason: Reason) -> None:
        self._undelivered.turned_away(receivers, message, reason)

    def dead_letter(
        self, receiver: Session, entries: Sequence[Entry], code: ErrorCode, text: str
    ) -> None:
        self._undelivered.dead_letter(receiver, entries, code, text)

    def discard(self, receiver: Session, messages: Sequence[Message], reason: Reason) -> None:
        self._undelivered.discard(receiver, messages, reason)

    def make_room_for(self, receiver: Session, message: Message) -> bool:
        return self._message_expiry.make_room_for(receiver, message)

    def watch_expiry(self, receiver: Session) -> None:
        self._message_expiry.watch(receiver)

    def forget_expiry(self, receiver: Session) -> None:
        self._message_expiry.forget(receiver)

    def recheck(self, message: Message, receivers: Sequence[Session]) -> None:
        self._reauthorizations.recheck(message, receivers)


def assemble(
    options: Settings,
    *,
    shards: int = 1,
    node: Node,
    store: StorePort,
    epoch: str,
    journal: DeliveryJournal,
    client_ids: ClientIds,
    random: Callable[[], float],
    on_ready: Callable[[], None],
    run_later: RunLater,
    is_turn_over: Callable[[], bool],
    unread_since: Callable[[], float],
    role_of: Callable[[str], str],
    neighbours: "Neighbours | None" = None,
) -> Bayeux:
    """Create a server.

    Args:
        shards: How many there are, this one included.
        epoch: Identifies the store in cursors: another store has another epoch.
        on_ready: Called when the turn must end with a `flush`.
        is_turn_over: Returns whether divisible work should continue in a later turn.
        unread_since: Returns when the oldest unread request arrived; infinity if there is none.
        role_of: Returns the role of a stored session by its warrant; empty if it has none.
        neighbours: The other shards, if there are any.
    """
    settling = SettlingParts()
    state = ServerState(
        options,
        shards=shards,
        random=random,
        client_ids=client_ids,
        on_ready=on_ready,
        run_later=run_later,
        node=node,
        store=store,
        epoch=epoch,
        journal=journal,
        is_turn_over=is_turn_over,
        role_of=role_of,
        settling=settling,
        neighbours=neighbours,
    )
    life = _life(state, unread_since, random)
    settling.bind(life.undelivered, life.message_expiry, life.reauthorizations)
    _add_services(state, life)
    return _server(state, life, neighbours)


def _life(
    state: ServerState, unread_since: Callable[[], float], random: Callable[[], float]
) -> SessionLife:
    """Create the parts that change sessions, in the order of what needs what."""
    owning = _Owning(state, unread_since, random)
    settling = _Settling(state, owning.owner)
    ending = _Ending(state, owning, settling)
    undelivered, fail_session = settling.undelivered, ending.ends.fail_session
    return SessionLife(
        state,
        unconnected=owning.unconnected,
        clock=owning.clock,
        channel_holds=owning.channel_holds,
        owner=owning.owner,
        settlement=settling.settlement,
        undelivered=undelivered,
        hand_overs=settling.hand_overs,
        failures=Failures(settling.parts, undelivered, fail_session),
        message_expiry=settling.message_expiry,
        reauthorizations=Reauthorizations(state, owning.owner, undelivered),
        answers=ending.answers,
        login_events=ending.login_events,
        ends=ending.ends,
        topics=TopicLife(state, owning.owner, undelivered),
    )


class _Owning:
    """The owner of sessions, who tells the delivery of them, and what the owner needs."""

    def __init__(
        self, state: ServerState, unread_since: Callable[[], float], random: Callable[[], float]
    ) -> None:
        self.unconnected = UnconnectedSessions()
        self.clock = SessionClock(
            state.options,
            state.sessions,
            unconnected=self.unconnected,
            presence=state.presence,
            node=state.node,
            unread_since=unread_since,
        )
        self.channel_holds = ChannelHolds(
            state.guard,
            state.hub,
            channels=state.channels,
            node=state.node,
            journal=state.journal,
            notices=state.notices,
            events=state.system_events,
        )
        self.owner = SessionOwner(state, self.clock, self.channel_holds, random)


class _Settling:
    """The parts that hand entries over and settle them."""

    def __init__(self, state: ServerState, owner: SessionOwner) -> None:
        self.parts = _parts(state, owner)
        self.undelivered: Undelivered[Session] = Undelivered(self.parts)
        self.hand_overs: HandOvers[Session] = HandOvers(self.parts, self.undelivered)
        self.settlement: Settlement[Session] = Settlement(self.parts)
        self.message_expiry = MessageExpiry(
            self.undelivered, state.histories, state.node, state.log_fault
        )


class _Ending:
    """The part that ends sessions, with those that say so to clients and to subscribers."""

    def __init__(self, state: ServerState, owning: _Owning, settling: _Settling) -> None:
        self.answers = Answers(
            state,
            owning.clock,
            arrivals=Arrivals(
                state.hub,
                settlement=settling.settlement,
                hand_overs=settling.hand_overs,
                message_expiry=settling.message_expiry,
            ),
            hand_overs=settling.hand_overs,
            undelivered=settling.undelivered,
            message_expiry=settling.message_expiry,
        )
        self.login_events = LoginEvents(state.channels, node=state.node, events=state.system_events)
        self.ends = SessionEnds(
            state,
            self.answers,
            undelivered=settling.undelivered,
            message_expiry=settling.message_expiry,
            unconnected=owning.unconnected,
            login_events=self.login_events,
        )


def _parts(state: ServerState, owner: SessionOwner) -> DeliveryParts[Session]:
    return DeliveryParts(
        owner,
        state.store,
        journal=state.journal,
        ledger=state.ledger,
        node=state.node,
        guard=state.guard,
        notices=state.notices,
        attempt_notes=AttemptNotes(state.node),
        waiting_places=state.waiting_places,
    )


def _add_services(state: ServerState, life: SessionLife) -> None:
    topics = TopicService(
        life.topics,
        TopicStatuses(state.topics, state.rules, state.work, state.routes),
        calls=state.calls,
        backlog=state.backlog,
        channels=state.channels,
        topics=state.topics,
        histories=state.histories,
        node=state.node,
        rights=state.rights,
        budgets=state.budgets,
    )
    state.services.add(TOPICS, topics.serve)
    presence = PresenceService(
        state.presence,
        state.presence_events,
        channels=state.channels,
        rights=state.rights,
        budgets=state.budgets,
    )
    state.services.add(PRESENCE_SERVICE, presence.serve)


def _server(state: ServerState, life: SessionLife, neighbours: "Neighbours | None") -> Bayeux:
    """Create the parts that handle clients' messages."""
    slots = SessionSlots(state, life.ends, life.undelivered, life.unconnected)
    unclaimed = UnclaimedSessions(life, slots)
    encoder = Encoder(state)
    requests = RequestHandler(state, encoder.encoded, life.undelivered)
    ptp = PointToPoint(state.waiting_places, unclaimed.open)
    far = None
    if neighbours is not None:
        # A server alone need not load them.
        from holdfast.bayeux.far_parts import FarParts

        far = FarParts(state, life, neighbours, ptp=ptp, encoder=encoder)
    publishing = Publishing(state, ptp, encoder) if far is None else far.publishing
    ticking = [
        add_delays(state, publishing, life.undelivered),
        *(() if far is None else far.ticking),
    ]
    return Bayeux(
        state,
        life,
        slots=slots,
        claims=Claims(
            state.options,
            state.sessions,
            shards=state.shards,
            rights=state.rights,
            quotas=state.quotas,
            ends=life.ends,
            slots=slots,
        ),
        identities=Identities(
            state.options,
            state.sessions,
            client_ids=state.client_ids,
            budgets=state.budgets,
            rights=state.rights,
            owner=life.owner,
        ),
        publishing=publishing,
        requests=requests,
        publish_handler=PublishHandler(
            *(state, life.answers, publishing, requests),
            everywhere=None if far is None else far.requests,
        ),
        subscribe_handler=SubscribeHandler(
            state, life.answers, far=None if far is None else far.histories
        ),
        verdicts=VerdictHandler(
            life.settlement,
            life.failures,
            hub=state.hub,
            options=state.options,
            budgets=state.budgets,
            is_turn_over=state.is_turn_over,
        ),
        ext_reader=ExtReader(state.options, state.installed, state.budgets),
        due=DueSessions(life),
        ticking=ticking,
        probes=Probes(state.guard, state.hub, state.channels),
        streams=Streams(state),
        far=far,
    )
