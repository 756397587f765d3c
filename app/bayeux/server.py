"""One Bayeux server as the web layer calls it. No I/O, no clock. `assembly` creates it."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from holdfast.bayeux.meta.client_verdicts import VerdictHandler
from holdfast.bayeux.meta.reading import ExtReader
from holdfast.bayeux.publish.incoming import PublishHandler
from holdfast.bayeux.publish.new_messages import Publishing
from holdfast.bayeux.publish.requests import RequestHandler
from holdfast.bayeux.session import Exchange, Pipe, Session
from holdfast.bayeux.sessions.claims import Claims
from holdfast.bayeux.sessions.due import DueSessions
from holdfast.bayeux.sessions.identities import Identities
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.probes import Probes
from holdfast.bayeux.sessions.slots import SessionSlots
from holdfast.bayeux.state.backlog import SerialWork
from holdfast.bayeux.state.phase import Phase
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.streams.history_parts import Streams
from holdfast.bayeux.subscribe.handler import SubscribeHandler
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.ignoring import ignore

if TYPE_CHECKING:
    from holdfast.bayeux.far_parts import FarParts

_HANDSHAKE: Final = "/meta/handshake"
_CONNECT: Final = "/meta/connect"
# After this many messages, `_send_news` checks whether the turn is over.
_BETWEEN_CHECKS: Final = 16

# Called every tenth of a second, with the time and with the wall clock in ms.
Tick = Callable[[float, int], None]


class Bayeux:
    """The server as the web layer calls it.

    Requests arrive by `exchanges.receive`. The web layer must call `flush` at the end of a turn in
    which `on_ready` was called, `tick` every tenth of a second, `abort` and `detach` when
    connections are lost, `drained` when a connection takes bytes again, and `stop` once. `life`
    changes sessions; `publishing` publishes.
    """

    def __init__(
        self,
        state: ServerState,
        life: SessionLife,
        *,
        slots: SessionSlots,
        claims: Claims,
        identities: Identities,
        publishing: Publishing,
        requests: RequestHandler,
        publish_handler: PublishHandler,
        subscribe_handler: SubscribeHandler,
        verdicts: VerdictHandler,
        ext_reader: ExtReader,
        due: DueSessions,
        ticking: Sequence[Tick],
        probes: Probes,
        streams: Streams,
        far: "FarParts | None",
    ) -> None:
        self.state = state
        self.life = life
        self.slots = slots
        self.claims = claims
        self.identities = identities
        self.publishing = publishing
        self.requests = requests
        self.publish_handler = publish_handler
        self.subscribe_handler = subscribe_handler
        self.verdicts = verdicts
        self.ext_reader = ext_reader
        self._due = due
        self._ticking = ticking
        self._probes = probes
        self.streams = streams
        # What it has because there are other shards.
        self.far = far

    def flush(self, now: float, before_long_work: Callable[[], None] = ignore) -> bool:
        """End the turn: send news to sessions, and continue long work.

        Returns whether another turn must follow: the budget was spent, or another session became
        ready in the meantime.

        Args:
            before_long_work: Sends what has been answered, because long work follows.
        """
        state = self.state
        state.backlog.end_turn(now)
        state.is_awake = False
        if state.lingering:
            lingering, state.lingering = state.lingering, []
            self.life.clock.begin_lingering(lingering, now)
        if state.hub.ready:
            self._send_news(state.hub.take_ready(), now)
        if state.backlog:
            before_long_work()
            state.backlog.go_on(now)
        return state.is_awake

    def _send_news(self, ready: list[Session], now: float) -> None:
        watch, answers = self.state.hub.watch, self.life.answers
        samples = () if watch is None else watch.sample(ready, self.state.guard.held)
        if self.state.hub.durables:
            # The store is asked about durable sessions only.
            answers.begin_round()
        unchecked = 0
        for place, session in enumerate(ready, 1):
            unchecked += max(1, session.queue.count)
            try:
                answers.send_news(session, now)
            except BaseException:
                self.state.log_fault(session)
            if unchecked >= _BETWEEN_CHECKS:
                unchecked = 0
                if self.state.is_turn_over():
                    self.state.hub.put_back(ready[place:])
                    break
        answers.end_round()
        if watch is not None and samples:
            watch.measured(samples, self.state.node.stamp())

    def tick(self, now: float) -> None:
        """Advance time: held connects, lazy messages, expired messages and sessions."""
        state = self.state
        wall_ms = state.node.now_ms()
        self.life.clock.follow_wall(now, wall_ms)
        self.life.message_expiry.tick(wall_ms)
        state.topic_changes.tick(wall_ms)
        self._due.tick(now)
        for tick in self._ticking:
            tick(now, wall_ms)
        self.slots.tick(now)
        self.life.channel_holds.tick(wall_ms)
        self._probes.tick(now)
        state.requests.tick(now)
        state.notices.beat(now)
        state.admission.beat(now)
        state.refused_publishes.tick(now)
        state.journal.beat(now)

    def session_of(self, first: Json, exchange: Exchange) -> Session | None:
        """Return the session of a request, looked up once by its first message."""
        if first.get("channel") == _HANDSHAKE:
            return None
        if exchange.pipe is not None:
            return self._session_of_pipe(first, exchange, exchange.pipe)
        return self.identities.find(first.get("clientId"), exchange)

    def _session_of_pipe(self, first: Json, exchange: Exchange, pipe: Pipe) -> Session | None:
        """Return the session of a pipe.

        The pipe keeps it until the session ends or a connect names another.
        """
        bound, client_id = pipe.session, first.get("clientId")
        if bound is not None and not bound.is_gone:
            if client_id == bound.client_id:
                # A late message on an old connection must not take the session from a newer one.
                if bound.pipe is None and not exchange.is_lost:
                    self.life.attach(pipe, bound, exchange.now)
                return bound
            if first.get("channel") != _CONNECT:
                return None
        if self.state.options.ws_require_handshake_per_connection:
            return None
        session = self.identities.find(client_id, exchange)
        if session is not None and not exchange.is_lost:
            self.life.attach(pipe, session, exchange.now)
        return session

    def abort(self, exchange: Exchange, now: float) -> None:
        """Drop an exchange whose connection is lost. Undelivered messages stay in the queue."""
        exchange.is_aborted = True
        session = exchange.session
        if session is not None and session.held_connect is exchange:
            self.state.sessions.release_connect(session, exchange)
            self.life.clock.await_return(session, now)

    def stop(self, now: float, done: Callable[[], None] = ignore) -> None:
        """Answer all held connects, over several turns if necessary, and hold no more.

        Then call `done`. Clients return spread over some seconds.
        """
        self.state.phase = Phase.STOPPING
        self.streams.end_waits()
        self.state.notices.end_window()
        self.state.refused_publishes.flush()
        holding = [each for each in self.state.sessions if each.held_connect is not None]
        dismissing = SerialWork([partial(self._dismiss_next, deque(holding))], done)
        self.state.backlog.begin(dismissing.go_on, now)

    def _dismiss_next(self, holding: deque[Session], now: float) -> bool:
        """Answer one held connect. Returns whether there may be more."""
        session = holding.popleft() if holding else None
        if session is not None and session.held_connect is not None:
            try:
                advice = self.life.farewell_advice(session)
                self.life.answers.release_with(session, session.held_connect, advice, now)
            except BaseException:
                self.state.log_fault(session)
        return bool(holding)


def far_parts_of(bayeux: Bayeux) -> "FarParts":
    """Return what a server has because there are other shards."""
    assert bayeux.far is not None, "this server is alone"
    return bayeux.far
