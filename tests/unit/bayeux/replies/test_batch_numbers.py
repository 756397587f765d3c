"""The number of a batch and its content never differ.

Whatever the transport, the delay of the store, a lost connection, or an extension that fails: a
client that acknowledges the last number it has received settles what it has received, and nothing
else.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.delivery.messages.batch import Batch
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Socket, Wire

_CHANNEL = "/a"


class Faulty(SessionExtension):
    """Fails for some replies, or ends what the session may get."""

    def __init__(self, extension: "FaultyExtension") -> None:
        self._extension = extension

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        if reply["channel"] == "/meta/connect":
            fails, self._extension.fails = self._extension.fails, False
            if fails:
                raise RuntimeError("as the test wants it")


class FaultyExtension(ServerExtension):
    fails = False

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return Faulty(self)


class Numbers(RuleBasedStateMachine):
    """One client that acknowledges, and a server in trouble."""

    def __init__(self) -> None:
        super().__init__()
        self.faulty = FaultyExtension()
        self.server = Server(
            DeliveryWire,
            lambda server: Ack(server, announces_batch=True),
            self.faulty,
            allow_message_delivery_during_handshake=True,
        )
        self.client, self.publisher = self.server.guest(), self.server.client()
        self.published = 0
        # What its clients have received, and the last number that came to the present one.
        self.heard: set[int] = set()
        self.last = 0
        # Requests that wait for an answer, and whether their client will get it.
        self.asked: list[tuple[Client, Asked]] = []
        self.greet()
        self.client.subscribe(_CHANNEL)
        self.settle_down()

    def greet(self) -> None:
        """The client comes, or another takes its session over."""
        client = Client(self.server, browser=self.client.browser)
        self.last = 0
        self.numbers: set[int] = set()
        ext = {"ack": True, "delivery": {"session": "joe/1"}}
        asked = client.handshake(ext=ext)
        reply = asked.replies[0]
        assert reply["successful"]
        assert reply.get("x-messages", 0) == len(asked.events)
        number = reply["ext"]["ack"]["batch"]
        assert bool(number) == bool(asked.events)
        self.client = client
        self.hear(number, asked.data)

    def hear(self, number: int, data: list[int]) -> None:
        """The client receives a batch, and remembers its number for the next connect."""
        if number:
            # Replies on several connections may overtake each other.
            assert number not in self.numbers
            self.numbers.add(number)
            self.last = number
        else:
            assert not data
        self.heard.update(data)

    @rule(count=st.integers(1, 5))
    def publish(self, count: int) -> None:
        for _ in range(count):
            self.publisher.publish(_CHANNEL, self.published)
            self.published += 1
        self.server.turn()

    @rule(
        is_patient=st.booleans(),
        is_socket=st.booleans(),
        fate=st.sampled_from(["heard", "heard", "heard", "cut", "lost"]),
        acks=st.sampled_from([True, True, False]),
        fails=st.sampled_from([False, False, True]),
    )
    def connect(
        self, is_patient: bool, is_socket: bool, fate: str, acks: bool, fails: bool = False
    ) -> None:
        """The client asks for messages.

        Its connection may be lost before or behind the answer, or an extension may fail.
        """
        self.faulty.fails = fails
        self.client.socket = Socket() if is_socket else None
        message: Json = {"channel": "/meta/connect", "connectionType": "long-polling"}
        message["ext"] = {"ack": self.last if acks else 0}
        if not is_patient:
            message["advice"] = {"timeout": 0}
        socket = self.client.socket
        if socket is not None:
            asked = self.client.send(message)
            if fate == "cut":
                self.server.close(socket)
            self.server.turn()
            self.listen()
            self.receive([socket.take()], fate)
            return
        wire = Wire()
        asked = self.client.send(message, wire=wire)
        if fate == "cut" and asked.is_held:
            self.server.abort(asked)
        self.asked.append((self.client, asked))
        if fate == "lost":
            wire.is_dropped = True
        self.listen()

    def listen(self) -> None:
        """Look at the answers that have come since."""
        waiting = []
        for client, asked in self.asked:
            if asked.is_held:
                waiting.append((client, asked))
                continue
            is_mine = client is self.client and not asked.wire.is_dropped
            self.receive([asked.elements], "heard" if is_mine else "lost")
        self.asked = waiting

    def receive(self, frames: list[list[Json]], fate: str) -> None:
        for elements in frames:
            for reply in elements:
                if reply.get("channel") != "/meta/connect":
                    continue
                number = reply.get("ext", {}).get("ack", 0)
                data = [each["data"] for each in elements if "successful" not in each]
                if fate == "heard":
                    self.hear(number, data)
                elif not number:
                    assert not data

    @rule(is_prompt=st.booleans())
    def slow_down(self, is_prompt: bool) -> None:
        """The store becomes silent, or prompt again."""
        self.server.keeper.is_prompt = is_prompt

    @rule()
    def answer(self) -> None:
        """The store answers what it was asked, and the turn ends."""
        self.server.turn()
        self.listen()

    @rule(is_held=st.booleans())
    def hold(self, is_held: bool) -> None:
        """An operator holds the queue back, or lets it flow."""
        life, session, now = self.server.bayeux.life, self.client.session, self.server.now
        if is_held:
            life.hold_back(session, "lunch", who="ops", now=now)
        else:
            life.resume(session, now)
        self.listen()

    @rule()
    def come_again(self) -> None:
        """Another client of the subject takes the session over."""
        self.server.turn()
        self.listen()
        self.greet()
        self.listen()

    @invariant()
    def only_what_was_heard_is_settled(self) -> None:
        waiting = self.client.session.queue.messages()
        left = {_number_in(message.wire) for message in waiting}
        settled = {*range(self.published)} - left
        assert settled <= self.heard

    def settle_down(self) -> None:
        """The client gets everything that waits."""
        self.server.keeper.is_prompt = True
        self.server.turn()
        self.server.bayeux.life.resume(self.client.session, self.server.now)
        for _ in range(50):
            self.server.advance(0.2)
            self.connect(is_patient=False, is_socket=False, fate="heard", acks=True)
            self.answer()
            if not self.client.session.queue.count:
                return
        raise AssertionError("messages wait for ever")

    def teardown(self) -> None:
        self.settle_down()
        assert self.heard == {*range(self.published)}
        assert self.server.balances()


def _number_in(wire: bytes) -> int:
    return int(wire.partition(b'"data":')[2].partition(b",")[0].rstrip(b"}"))


def ask(client: Numbers, fate: str, *, is_socket: bool = False, fails: bool = False) -> None:
    client.connect(is_patient=False, is_socket=is_socket, fate=fate, acks=True, fails=fails)


def test_an_ack_of_a_batch_that_left_without_messages_settles_none_of_those_that_went_again() -> (
    None
):
    client = Numbers()
    client.publish(count=1)
    ask(client, "lost")
    # Its reply waits for the store, and leaves without messages because the extension fails.
    ask(client, "heard")
    ask(client, "cut", is_socket=True, fails=True)
    ask(client, "heard")
    client.only_what_was_heard_is_settled()
    client.teardown()


@pytest.mark.slow
def test_the_number_of_a_batch_and_its_content_never_differ() -> None:
    run_state_machine_as_test(
        Numbers,
        settings=settings(
            max_examples=50 * TIMES,
            stateful_step_count=30,
            report_multiple_bugs=False,
            phases=set(Phase) - {Phase.explain},
        ),
    )
