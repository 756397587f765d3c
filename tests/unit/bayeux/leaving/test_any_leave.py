"""Whatever clients have done, they notice nothing when another server goes on.

A machine lets clients of all kinds come, subscribe, publish, lose replies, refuse messages and go
away. Then the server leaves: the next one has exactly what it had, and each client gets each
message once and in order.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast.delivery.messages.message import ORDINARY_PRIORITY
from holdfast.settings import ChannelSettings
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Client, Json, Socket, Wire
from tests.unit.bayeux.leaving.pictures import differences, picture
from tests.unit.bayeux.leaving.successors import LeavingServer
from tests.unit.bayeux.second_lives import no, ok

CHANNELS = ("/a", "/lazy", "/kept", "/topic")
KINDS = ("plain", "socket", "acks", "verdicts", "named", "named with acks", "subject")


class Person:
    """A client, and what it is to hear."""

    def __init__(self, server: LeavingServer, number: int, kind: str) -> None:
        self.kind = kind
        self.name = f"p{number}/1" if kind.startswith("named") else f"p{number}"
        self.has_acks = kind in ("acks", "named with acks")
        self.has_verdicts = kind in ("verdicts", "named", "subject")
        self.client = server.guest(socket=Socket() if kind == "socket" else None)
        self.ack = 0
        # The numbers of entries that it has heard and not judged.
        self.unjudged: list[int] = []
        # The numbers of messages, in order; those that may come again.
        self.expected: list[int] = []
        self.heard: list[int] = []
        self.again: set[int] = set()
        # Those that may overtake others.
        self.hasty: set[int] = set()
        self.held: Asked | None = None
        self.channels: set[str] = set()
        self.greet()

    def greet(self) -> None:
        ext: Json = {"request": True}
        if self.has_acks:
            ext["ack"] = True
        if self.kind in ("verdicts", "named", "named with acks"):
            ext["delivery"] = True
        if self.kind not in ("plain", "socket", "acks", "verdicts"):
            ext["delivery"] = {"session": self.name, "delay": 1000, "retries": -1}
        asked = self.client.handshake(ext=ext)
        assert asked.replies[0]["successful"], asked.replies

    @property
    def id(self) -> str | None:
        return self.client.client_id

    def ask(self, *, is_patient: bool = False, is_lost: bool = False, refuses: int = 0) -> None:
        """Connect: say what was heard, and hear what comes."""
        # The last request may have been answered in a turn that another client has caused.
        self.listen()
        if self.held is not None and self.held.is_held and self.client.socket is None:
            self.client.server.abort(self.held)
        ext: Json = {}
        if self.has_acks:
            ext["ack"] = self.ack
        if self.has_verdicts and self.unjudged:
            said = [ok(seq) for seq in self.unjudged[refuses:]]
            said += [no(seq, "user.update.error") for seq in self.unjudged[:refuses]]
            ext["delivery"] = {"verdicts": said}
            self.unjudged = []
        fields: Json = {"ext": ext} if ext else {}
        if not is_patient:
            fields["advice"] = {"timeout": 0}
        wire = None if self.client.socket is not None else Wire()
        self.held = self.client.connect(wire=wire, **fields)
        self.client.server.turn()
        if is_lost and wire is not None and self.can_lose:
            if wire.elements is None:
                self.client.server.abort(self.held)
            wire.is_dropped = True
            self.held = None
        self.listen()

    @property
    def can_lose(self) -> bool:
        """Whether the server learns that a reply was lost."""
        return self.has_acks or self.has_verdicts

    def listen(self) -> None:
        """Hear what has come since."""
        self.take(self.client.hear())
        if self.held is not None and self.client.socket is None and not self.held.is_held:
            elements, self.held = self.held.elements, None
            self.take(elements)

    def take(self, elements: list[Json]) -> None:
        for each in elements:
            if each["channel"] == "/meta/connect":
                assert each["successful"], each
                if self.has_acks:
                    self.ack = each["ext"]["ack"]
            elif "data" in each and each["channel"] in CHANNELS:
                self.hear(each)

    def hear(self, event: Json) -> None:
        number = event["data"]
        if self.has_verdicts:
            self.unjudged.append(event["ext"]["delivery"]["seq"])
        if number in self.again and number in self.heard:
            return
        assert number not in self.heard, (self.kind, number)
        self.heard.append(number)

    def has_heard_all(self) -> bool:
        ordered = [each for each in self.heard if each not in self.again | self.hasty]
        assert ordered == [each for each in self.expected if each in ordered], self.kind
        return {*self.heard} == {*self.expected}


class Leaves(RuleBasedStateMachine):
    """A server, and those that come after it."""

    durable = "named"

    def __init__(self) -> None:
        super().__init__()
        self.server = LeavingServer(
            durable=self.durable,
            timeout=10_000,
            max_interval=30_000,
            channels={
                "/lazy": ChannelSettings(lazy_timeout=2000),
                "/kept": ChannelSettings(history=5, presence=True),
                "/topic": ChannelSettings(topic=True, destroy_delay=1000),
            },
        )
        self.people: list[Person] = []
        self.published = 0
        self.publisher = self.server.connected()

    def person(self, number: int) -> Person | None:
        return self.people[number % len(self.people)] if self.people else None

    @rule(kind=st.sampled_from(KINDS), channels=st.sets(st.sampled_from(CHANNELS), min_size=1))
    def come(self, kind: str, channels: set[str]) -> None:
        if len(self.people) == 4:
            return
        person = Person(self.server, len(self.people), kind)
        self.people.append(person)
        self.subscribe(len(self.people) - 1, channels)
        person.ask()

    @rule(number=st.integers(0, 3), channels=st.sets(st.sampled_from(CHANNELS), min_size=1))
    def subscribe(self, number: int, channels: set[str]) -> None:
        person = self.person(number)
        if person is not None:
            asked = person.client.subscribe(*sorted(channels))
            self.server.turn()
            person.take(asked.events if person.client.socket is None else [])
            person.listen()
            person.channels |= channels

    @rule(
        channel=st.sampled_from(CHANNELS),
        is_passing=st.booleans(),
        priority=st.sampled_from([5, 5, 5, 8]),
    )
    def publish(self, channel: str, is_passing: bool, priority: int) -> None:
        number = self.published
        self.published += 1
        ext: Json = {"delivery": {"priority": priority}}
        if is_passing:
            ext["delivery"]["persistent"] = False
        self.publisher.publish(channel, number, ext=ext)
        for person in self.people:
            if channel in person.channels:
                person.expected.append(number)
                if priority != ORDINARY_PRIORITY:
                    person.hasty.add(number)
        self.server.turn()
        self.listen()

    def listen(self) -> None:
        for person in self.people:
            person.listen()

    @rule(
        number=st.integers(0, 3),
        is_patient=st.booleans(),
        is_lost=st.sampled_from([False, False, True]),
    )
    def ask(self, number: int, is_patient: bool, is_lost: bool) -> None:
        person = self.person(number)
        if person is not None:
            person.ask(is_patient=is_patient, is_lost=is_lost)

    @rule(number=st.integers(0, 3))
    def refuse(self, number: int) -> None:
        """A client refuses what it got first; what it got may come again."""
        person = self.person(number)
        if person is not None and person.has_verdicts and person.unjudged:
            person.again |= {*person.expected}
            person.ask(refuses=1)

    @rule(number=st.integers(0, 3), is_held=st.booleans())
    def hold(self, number: int, is_held: bool) -> None:
        """An operator holds a queue back, or lets it flow."""
        person = self.person(number)
        if person is not None and person.can_lose:
            life, now = self.server.bayeux.life, self.server.now
            if is_held:
                life.hold_back(person.client.session, "lunch", who="ops", now=now)
            else:
                life.resume(person.client.session, now)
            self.server.turn()
            self.listen()

    @rule(number=st.integers(0, 3))
    def come_again(self, number: int) -> None:
        """A client takes its named session over from itself."""
        person = self.person(number)
        if person is not None and person.kind.startswith("named"):
            person.again |= {*person.heard}
            browser = person.client.browser
            person.client = Client(self.server, browser=browser)
            person.ack, person.unjudged, person.held = 0, [], None
            person.greet()
            self.server.turn()

    @rule(seconds=st.sampled_from([0.1, 1.5]))
    def wait(self, seconds: float) -> None:
        self.server.advance(seconds)
        self.listen()

    @rule(after_s=st.sampled_from([0.1, 3.0]))
    def succeed(self, after_s: float) -> None:
        """Another server goes on."""
        ids = [person.id for person in self.people]
        before = self.server.leave()
        self.listen()
        had = picture(self.server)
        self.server = self.server.follower(before, after_s=after_s, is_turned=False)
        assert differences(picture(self.server), had) == []
        self.server.turn()
        for person in (*self.people, None):
            client = self.publisher if person is None else person.client
            client.server = self.server
            if client.socket is not None:
                client.socket.session = None
        assert ids == [person.id for person in self.people]

    @rule()
    def change_mind(self) -> None:
        """No other server goes on after all."""
        self.server.leave()
        self.listen()
        had = picture(self.server)
        self.server.take_back()
        self.listen()
        assert picture(self.server)["sessions"].keys() == had["sessions"].keys()

    @invariant()
    def books_balance(self) -> None:
        assert self.server.balances()

    def teardown(self) -> None:
        for person in self.people:
            if person.can_lose:
                self.server.bayeux.life.resume(person.client.session, self.server.now)
        for _ in range(3):
            for person in self.people:
                for _ in range(8):
                    person.ask()
            self.server.advance(2.5)
        assert [person.kind for person in self.people if not person.has_heard_all()] == []
        assert self.server.balances()


class UnstoredLeaves(Leaves):
    durable = "none"


class AckedLeaves(Leaves):
    durable = "acked"


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Leaves, UnstoredLeaves, AckedLeaves])
def test_no_client_notices_a_leave(machine: Any) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15 * TIMES,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
