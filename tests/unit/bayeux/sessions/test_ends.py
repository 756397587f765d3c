"""How sessions end: which late messages become dead letters, and what always agrees."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.bayeux.sessions import interventions
from holdfast.delivery.basics.session_states import NEXT, SessionState
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.error_handler import Failure, ForMessage, ForRest, Reaction
from holdfast.delivery.queues.dispatcher import Dispatcher
from tests.effort import TIMES
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.second_lives import RestartableServer, codes, named, no, ok, publish, seqs

if TYPE_CHECKING:
    from holdfast.bayeux.session import Session

ERROR = "user.update.error"
EXPIRED = "user.security.authentication.accessDenied"

# Messages that arrive after the end


class Handler:
    """An error handler that ends the session without a word about the dispatcher."""

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
        return Reaction(ForMessage.DEAD, ForRest.DEAD, ends_session=True)


def connect(client: Client, *verdicts: Json) -> list[int]:
    """Connect without waiting; the numbers of the entries that came."""
    ack = client.session.queue.batch
    asked = client.connect(
        ext={"ack": ack, "delivery": {"verdicts": list(verdicts)}}, advice={"timeout": 0}
    )
    client.server.turn()
    return seqs(asked) if not asked.is_held else []


def refuse(code: str) -> Callable[[Client], None]:
    def refuse_next(client: Client) -> None:
        (seq,) = connect(client)
        client.connect(ext={"delivery": {"verdicts": [no(seq, code)]}}, advice={"timeout": 0})

    return refuse_next


def refuse_and(then: Callable[[Client], object]) -> Callable[[Client], None]:
    def refuse_then(client: Client) -> None:
        refuse(ERROR)(client)
        then(client)

    return refuse_then


def refuse_with_error_handler(client: Client) -> None:
    client.server.for_extensions.error_handlers.add("/a", Handler())
    refuse(ERROR)(client)


def disconnect(**delivery: bool) -> Callable[[Client], None]:
    def disconnect_so(client: Client) -> None:
        client.send({"channel": "/meta/disconnect", "ext": {"delivery": delivery}})

    return disconnect_so


def fall_silent(client: Client) -> None:
    server = client.server
    for _ in range(130):
        server.now = round(server.now + 0.1, 1)
        server.bayeux.tick(server.now)
        server.flush()


def end_by_server(client: Client) -> None:
    client.server.for_extensions.end_by_server(client.session)
    client.server.flush()


def kill_session(client: Client) -> None:
    interventions.end(client.server.bayeux.life, client.session, "ann", client.server.now)


PLAIN: Json | None = None
ACKS: Json = {"ack": True}
NAMED: Json = {"ack": True, "delivery": {"session": "joe/1", "retries": 0}}
STRICT: Json = {"ack": True, "delivery": {"onUserException": "dead"}}
STRICT_NAMED: Json = {"ack": True, "delivery": {"session": "joe/1", "onUserException": "dead"}}

WAYS = [
    (PLAIN, disconnect(), SessionState.ENDED),
    (PLAIN, fall_silent, SessionState.ENDED),
    (PLAIN, end_by_server, SessionState.ENDED),
    (ACKS, disconnect(), SessionState.ENDED),
    (ACKS, end_by_server, SessionState.ENDED),
    (ACKS, fall_silent, SessionState.FAILED),
    (ACKS, kill_session, SessionState.FAILED),
    (NAMED, disconnect(end=True), SessionState.ENDED_WITH_LETTERS),
    (NAMED, disconnect(end=True, discard=True), SessionState.ENDED),
    (NAMED, end_by_server, SessionState.ENDED_WITH_LETTERS),
    (NAMED, kill_session, SessionState.FAILED),
    (NAMED, refuse("communication.timeout"), SessionState.FAILED),
    (NAMED, refuse(EXPIRED), SessionState.ENDED_WITH_LETTERS),
    (NAMED, refuse_with_error_handler, SessionState.FAILED),
    (STRICT, refuse(ERROR), SessionState.STOPPED),
    (STRICT, refuse_and(disconnect()), SessionState.ENDED_WITH_LETTERS),
    (STRICT, refuse_and(end_by_server), SessionState.ENDED_WITH_LETTERS),
    (STRICT, refuse_and(fall_silent), SessionState.ENDED_WITH_LETTERS),
    (STRICT_NAMED, refuse_and(disconnect()), SessionState.STOPPED_AWAY),
    (STRICT_NAMED, refuse_and(disconnect(end=True, discard=True)), SessionState.ENDED_WITH_LETTERS),
]


@pytest.mark.parametrize(("ext", "way", "state"), WAYS)
def test_the_session_state_decides_about_a_message_that_the_store_confirms_too_late(
    ext: Json | None, way: Callable[[Client], None], state: SessionState
) -> None:
    server = RestartableServer(max_interval=10_000)
    client = server.client(ext=ext)
    client.connect(advice={"timeout": 0})
    client.subscribe("/a")
    server.turn()
    session = client.session
    if ext is not PLAIN:
        publish(server, "first")
    # Messages of the channel wait for the store, because of this session.
    named(server, name="ann/1")
    server.store.is_silent = True
    server.for_extensions.publish("/a", "late")
    way(client)
    letters, discarded = len(codes(server)), server.bayeux.state.hub.counters.discarded.copy()
    assert session.state is state
    server.store.answer_late(PersistOutcome.KEPT)
    server.turn()
    late = len(codes(server)) - letters
    lost = server.bayeux.state.hub.counters.discarded - discarded
    if session.leaves_letters:
        assert (late, lost) == (1, {})
    else:
        assert (late, lost) == (0, {Reason.SESSION_ENDED: 1})
    assert server.balances()


# Random operations

KINDS: dict[str, Json | None] = {
    "plain": PLAIN,
    "acks": {"ack": True, "delivery": {"retries": 1, "delay": 500}},
    "verdicts": {"delivery": {"onUserException": "dead", "responseTimeout": 1000}},
    "joe": {"ack": True, "delivery": {"session": "joe/1", "retries": 1}},
    "ann": {"ack": True, "delivery": {"session": "ann/1", "onUserException": "dead"}},
}
AFTER: dict[SessionState, set[SessionState]] = {
    old: {old, *NEXT[old].values()} for old in SessionState
}
for _ in SessionState:
    AFTER = {old: set().union(*(AFTER[each] for each in new)) for old, new in AFTER.items()}

people = st.sampled_from(sorted(KINDS))
words = st.sampled_from(
    [*[ERROR] * 4, EXPIRED, "user.update.holdback", "communication.timeout", "OK"]
)
steps = st.one_of(
    st.tuples(st.just("handshake"), people),
    st.tuples(st.sampled_from(["connect", "hold", "resume", "end by operator", "end"]), people),
    st.tuples(st.just("judge"), people, words),
    st.tuples(st.just("disconnect"), people, st.sampled_from(["leave", "end", "discard"])),
    st.tuples(st.just("publish"), st.sampled_from([True, True, False])),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 3.0, 12.0, 70.0])),
    st.tuples(st.sampled_from(["answer", "restart"])),
)


class Faults(logging.Handler):
    """Collects the errors that the server logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.format(record))


class Town:
    """Sessions of all kinds, and everything that may happen to them."""

    def __init__(self) -> None:
        self.server = RestartableServer(max_interval=10_000, max_session_timeout=60_000)
        self.clients = {kind: self.server.guest() for kind in KINDS}
        self.last: dict[Session, SessionState] = {}

    def do(self, what: str, *args: Any) -> None:
        match what:
            case "publish":
                self.server.for_extensions.publish("/a", 1)
                self.server.store.is_silent = not args[0]
            case "pass":
                self.server.advance(args[0])
            case "answer":
                self.server.store.is_silent = False
                self.server.turn()
            case "restart":
                self.restart()
            case _:
                self.do_to(what, self.clients[args[0]], *args)

    def do_to(self, what: str, client: Client, kind: str, word: str = "") -> None:
        life, now = self.server.bayeux.life, self.server.now
        session = next((s for s in self.last if s.client_id == client.client_id), None)
        match what:
            case "handshake":
                client.handshake(ext=KINDS[kind])
                client.connect(advice={"timeout": 0})
                client.subscribe("/a")
                self.server.turn()
            case "connect":
                client.connect()
            case "judge" if session is not None:
                self.server.for_extensions.publish("/a", 1)
                self.server.turn()
                client.connect(advice={"timeout": 0})
                said = [
                    ok(seq) if word == "OK" else no(seq, word) for seq in session.queue.in_flight()
                ]
                client.connect(ext={"ack": 0, "delivery": {"verdicts": said}})
            case "disconnect":
                delivery = {"end": word != "leave", "discard": word == "discard"}
                client.send({"channel": "/meta/disconnect", "ext": {"delivery": delivery}})
            case "hold" if session is not None and not session.is_gone:
                life.hold_back(session, "lunch", who="ann", now=now)
            case "resume" if session is not None and not session.is_gone:
                life.resume(session, now)
            case "end by operator" if session is not None and not session.is_gone:
                interventions.end(life, session, "ann", now)
            case "end" if session is not None:
                life.ends.end_by_server(session, now)

    def restart(self) -> None:
        self.server.turn()
        before = {s.key: s.takes_messages for s in self.last if s.is_durable}
        self.server = self.server.reborn()
        self.last = {}
        after = {s.key: s.takes_messages for s in self.server.bayeux.state.sessions}
        assert after == before
        for client in self.clients.values():
            client.server = self.server

    def check(self) -> None:
        sessions = list(self.server.bayeux.state.sessions)
        for session in sessions:
            self.last.setdefault(session, SessionState.HANDSHAKEN)
        for session, before in self.last.items():
            assert session.state in AFTER[before], "only as the table allows"
            assert session.is_gone is all(each is not session for each in sessions)
            if session.dispatcher is not None:
                assert session.dispatcher.is_dead is not session.takes_messages
            if not session.takes_messages:
                assert session.queue.count == 0, "nothing waits for a receiver that takes nothing"
            if session.is_gone:
                assert not (session.is_durable)
                assert not (session.subscriptions)
                assert session.held_connect is None
            self.last[session] = session.state


@pytest.mark.slow
@settings(max_examples=15 * TIMES)
@given(st.lists(steps, min_size=10, max_size=30))
@example([("judge", "ann", ERROR), ("disconnect", "ann", "leave"), ("restart",)])
@example([("judge", "ann", ERROR), ("restart",), ("pass", 12.0), ("handshake", "ann")])
@example([("judge", "ann", ERROR), ("publish", False), ("end by operator", "ann"), ("answer",)])
@example([("judge", "ann", ERROR), ("publish", False), ("restart",)])
def test_session_state_dispatcher_and_registry_agree_whatever_happens(
    story: list[tuple[Any, ...]],
) -> None:
    faults = Faults()
    log = logging.getLogger("holdfast.bayeux")
    log.addHandler(faults)
    try:
        town = Town()
        for kind in KINDS:
            town.do("handshake", kind)
        town.check()
        assert len(town.last) == len(KINDS)
        for what, *args in story:
            town.do(what, *args)
            town.server.turn()
            town.check()
        town.do("answer")
        town.check()
        assert town.server.balances()
        assert faults.seen == []
    finally:
        log.removeHandler(faults)
