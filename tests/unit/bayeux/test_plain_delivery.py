"""Plain sessions over HTTP and sockets, which begin, end, lose their connections and expire.

Every message that a session was subscribed to is delivered once and in order, until the session
ends; what a transport did not take waits; and the books balance after every step.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from holdfast.settings import ChannelSettings
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Socket, Wire

LIMIT = 6
CHANNELS = st.sampled_from(["/a", "/b", "/lazy"])
PATTERNS = st.sampled_from(["/a", "/b", "/lazy", "/*", "/**"])


class Person:
    """A client, and what the model says: what waits for it, and its subscriptions."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.session = client.session
        self.patterns: set[str] = set()
        self.waiting: list[int] = []
        self.asked: list[Asked] = []

    def matches(self, channel: str) -> bool:
        return bool(self.patterns & {channel, "/*", "/**"})

    def heard(self) -> list[Json]:
        """What came over all of its connections since the last call."""
        elements = self.client.hear()
        for asked in list(self.asked):
            if asked.wire.elements is not None:
                self.asked.remove(asked)
                elements += asked.elements
        return elements


class PlainDelivery(RuleBasedStateMachine):
    """Some clients of one server; the model believes the server about who is gone."""

    people = Bundle("people")

    def __init__(self) -> None:
        super().__init__()
        self.server = Server(
            timeout=3000,
            interval=500,
            max_interval=2000,
            max_queue=LIMIT,
            channels={"/lazy": ChannelSettings(lazy_timeout=1000)},
        )
        self.publisher = self.server.bayeux
        self.everybody: list[Person] = []
        # All that were ever full: a wire that has its answer may still be full.
        self.wires: list[Wire] = []
        self.number = 0

    # Coming and going

    @rule(target=people, browser=st.sampled_from(["shared", "other"]), over_socket=st.booleans())
    def somebody_comes(self, browser: str, over_socket: bool) -> Person:
        socket = Socket() if over_socket else None
        person = Person(self.server.client(browser=browser, socket=socket))
        person.client.hear()
        self.everybody.append(person)
        return person

    @rule(
        target=people, person=consumes(people), how=st.sampled_from(["client", "server", "again"])
    )
    def somebody_goes(self, person: Person, how: str) -> object:
        if how == "client":
            self.note(person, person.client.disconnect())
        elif how == "server":
            self.server.for_extensions.end_by_server(person.session)
            self.server.flush()
        elif how == "again":
            self.note(person, person.client.connect())
            self.look()
            return person
        self.look()
        return multiple()

    # What clients send

    @rule(person=people, pattern=PATTERNS)
    def subscribe(self, person: Person, pattern: str) -> None:
        asked = person.client.subscribe(pattern)
        self.note(person, asked)
        if not person.session.is_gone and self.is_heard(asked):
            person.patterns.add(pattern)
        self.look()

    @rule(person=people, pattern=PATTERNS)
    def unsubscribe(self, person: Person, pattern: str) -> None:
        self.note(person, person.client.unsubscribe(pattern))
        person.patterns.discard(pattern)
        self.look()

    @rule(person=people, is_patient=st.booleans(), is_cut=st.booleans())
    def connect(self, person: Person, is_patient: bool, is_cut: bool) -> None:
        fields: Json = {} if is_patient else {"advice": {"timeout": 0, "interval": 1000}}
        wire = None
        if person.client.socket is None:
            wire = Wire()
            wire.is_cut = is_cut
        self.note(person, person.client.connect(wire=wire, **fields))
        self.look()

    @rule(person=people, channel=CHANNELS)
    def publish_as_client(self, person: Person, channel: str) -> None:
        self.number += 1
        if not person.session.is_gone:
            self.expect(channel)
        self.note(person, person.client.publish(channel, self.number))
        self.look()

    @rule(channel=CHANNELS, ends_turn=st.booleans())
    def publish(self, channel: str, ends_turn: bool) -> None:
        self.number += 1
        self.expect(channel)
        self.server.for_extensions.publish(channel, self.number)
        if ends_turn:
            self.end_turn()

    # What connections do

    @rule(person=people)
    def close_connections(self, person: Person) -> None:
        client = person.client
        if client.socket is not None:
            self.server.close(client.socket)
            client.socket = Socket()
        for asked in person.asked:
            self.server.abort(asked)
        person.asked.clear()

    @rule(person=people)
    def break_unnoticed(self, person: Person) -> None:
        if person.client.socket is not None:
            person.client.socket.is_cut = True
        for asked in person.asked:
            asked.wire.is_cut = True

    @rule(person=people, is_full=st.booleans())
    def fill_or_drain(self, person: Person, is_full: bool) -> None:
        socket = person.client.socket
        if socket is None:
            for asked in person.asked:
                asked.wire.is_full = is_full
                self.wires.append(asked.wire)
            return
        socket.is_full = is_full
        if not is_full:
            self.publisher.life.drained(socket)
        self.look()

    @rule()
    def end_turn(self) -> None:
        self.server.turn()
        self.look()

    @rule(tenths=st.integers(1, 40))
    def wait(self, tenths: int) -> None:
        for _ in range(tenths):
            self.server.advance(0.1)
            self.look()

    # The model

    def note(self, person: Person, asked: Asked) -> None:
        if person.client.socket is None:
            person.asked.append(asked)

    def is_heard(self, asked: Asked) -> bool:
        return asked.exchange.session is not None

    def expect(self, channel: str) -> None:
        for person in self.everybody:
            if person.session.is_gone or not person.matches(channel):
                continue
            if len(person.waiting) < LIMIT:
                person.waiting.append(self.number)

    def look(self) -> None:
        """Assert that what was delivered is the beginning of what waits, in order and once."""
        for person in self.everybody:
            numbers = [e["data"] for e in person.heard() if "data" in e]
            assert person.waiting[: len(numbers)] == numbers
            del person.waiting[: len(numbers)]
            if person.session.is_gone:
                person.waiting.clear()
                person.patterns.clear()

    # What must hold

    @invariant()
    def books_balance(self) -> None:
        assert self.server.balances()
        for person in self.everybody:
            session = person.session
            waiting = [] if session.is_gone else person.waiting
            assert session.queue.count == len(waiting)
            assert not session.queue.in_flight()

    @invariant()
    def subscriptions_agree(self) -> None:
        routes = self.publisher.state.hub.routes
        for person in self.everybody:
            assert person.session.subscriptions == person.patterns
            assert all(pattern in routes for pattern in person.patterns)
        wanted = set().union(*(person.patterns for person in self.everybody))
        assert len(routes) == len(wanted)

    @invariant()
    def every_living_session_will_be_looked_at(self) -> None:
        sessions = self.publisher.state.sessions
        held: dict[str, int] = {}
        for session in sessions:
            assert not session.is_gone
            assert 0 < session.alarm <= int(session.next_due() * 10) + 1
            if session.held_connect is not None and session.held_connect.pipe is None:
                browser = session.held_connect.browser or ""
                held[browser] = held.get(browser, 0) + 1
        for browser in ("shared", "other"):
            assert sessions.held_by_browser.get(browser, 0) == held.get(browser, 0) <= 1

    def teardown(self) -> None:
        """All clients fall silent; then nothing is left of them."""
        for person in self.everybody:
            if person.client.socket is not None:
                self.server.close(person.client.socket)
        for wire in self.wires:
            wire.is_full = False
        self.server.advance(10.0)
        assert len(self.publisher.state.sessions) == 0
        assert len(self.publisher.state.hub.routes) == 0
        counters = self.publisher.state.hub.counters
        assert counters.accepted == counters.settled()


@pytest.mark.slow
def test_plain_delivery_agrees_with_a_simple_model() -> None:
    run_state_machine_as_test(
        PlainDelivery,
        settings=settings(
            max_examples=20 * TIMES,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
