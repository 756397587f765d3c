"""Acks over a network that loses, repeats, delays and reorders.

The server is compared with a naive model, answer by answer. A client that follows the rules must
end up with every message once and in order.
"""

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Json, Server, Wire

LIMIT = 8


class Model:
    """The unacked messages, in the simplest way."""

    def __init__(self, *, is_narrow: bool) -> None:
        # Whether a loss makes batches small.
        self.is_narrow = is_narrow
        self.batch = 0
        # The unacked messages, each with the successive batches that carried it.
        self.window: list[tuple[int, range]] = []
        # What the last answer carried, and the batch window: without limit if zero.
        self.handed: list[int] = []
        self.room = 0
        self.out_of_range = 0

    def publish(self, number: int) -> bool:
        if len(self.window) == LIMIT:
            return False
        self.window.append((number, range(0)))
        return True

    def acknowledge(self, batch: int) -> None:
        if not 0 <= batch <= self.batch:
            self.out_of_range += 1
            return
        before = len(self.window)
        self.window = [(n, carried) for n, carried in self.window if batch not in carried]
        here = [number for number, _ in self.window]
        self.handed = [number for number in self.handed if number in here]
        if not here:
            self.room = 0
        elif self.room:
            self.room += before - len(here)

    def answer(self) -> tuple[int, list[int]]:
        """After a loss: everything, or one message, plus one for each that was acked since."""
        self.batch += 1
        if self.handed and self.is_narrow:
            self.room = 1
        going, staying = self.window[: self.room or LIMIT], self.window[self.room or LIMIT :]
        going = [
            (n, range(c.start if c.stop == self.batch else self.batch, self.batch + 1))
            for n, c in going
        ]
        self.window = going + staying
        self.handed = [number for number, _ in going]
        return self.batch, self.handed

    def write_in_vain(self) -> None:
        """No client can have received the last batch, so an ack of it settles nothing."""
        only = range(self.batch, self.batch + 1)
        self.window = [(n, range(0) if carried == only else carried) for n, carried in self.window]
        self.handed = []


class Request:
    """A connect on its way; it may arrive once, never, or several times."""

    def __init__(self, message: Json) -> None:
        self.message = message


class AckWindow(RuleBasedStateMachine):
    """One client, its server, and the network between them."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server(
            DeliveryWire,
            partial(Ack, announces_batch=False),
            max_queue=LIMIT,
            max_interval=100_000_000,
        )
        self.number = 0
        self.taken: list[int] = []
        # Between client and server: requests that may still arrive, and answers likewise.
        self.requests: list[Request] = []
        self.arrived: list[Request] = []
        self.answers: list[tuple[Request, Asked]] = []
        self.asked: list[Asked] = []
        # What the client knows: the request that it waits for, and what it has received.
        self.awaited: Request | None = None
        self.acknowledged = 0
        # The batches that it received: an ack of another could settle messages that it lacks.
        self.batches = {0}
        self.received: list[int] = []
        self.seen: list[int] = []

    @initialize(gives_verdicts=st.booleans())
    def first_connect(self, gives_verdicts: bool) -> None:
        self.model = Model(is_narrow=gives_verdicts)
        terms = {"delivery": {"responseTimeout": 0}} if gives_verdicts else {}
        self.client = self.server.client(ext={"ack": True, **terms})
        self.client.subscribe("/a")
        self.ask(patient=True)
        self.request_arrives(0, repeats=False)

    # The server's side

    @rule(number_of_messages=st.integers(1, 3), ends_turn=st.booleans())
    def publish(self, number_of_messages: int, ends_turn: bool) -> None:
        for _ in range(number_of_messages):
            self.number += 1
            self.server.for_extensions.publish("/a", self.number)
            if self.model.publish(self.number):
                self.taken.append(self.number)
        if ends_turn:
            self.end_turn()

    @rule()
    def end_turn(self) -> None:
        self.server.turn()
        self.look_at_answers()

    @rule(tenths=st.integers(1, 12))
    def wait(self, tenths: int) -> None:
        for _ in range(tenths):
            self.server.advance(0.1)
            self.look_at_answers()

    # The client's side

    @rule(patient=st.booleans())
    def ask(self, patient: bool) -> None:
        """It gives up the request that it waits for and sends another."""
        message: Json = {"channel": "/meta/connect", "ext": {"ack": self.acknowledged}}
        if not patient:
            message["advice"] = {"timeout": 0}
        self.awaited = Request(self.client.dress(message))
        self.requests.append(self.awaited)

    @rule()
    def have_a_good_moment(self) -> None:
        """A request and its answer arrive at once, and the client sends the next request."""
        self.ask(patient=False)
        self.request_arrives(len(self.requests) - 1, repeats=False)
        self.answer_arrives(len(self.answers) - 1)
        self.ask(patient=True)

    @rule(ack=st.integers(-3, 40))
    def send_a_wrong_acknowledgement(self, ack: int) -> None:
        """An old ack, or one of a batch that was never sent; others would lie and lose messages."""
        if 0 <= ack <= self.model.batch and ack not in self.batches:
            ack = self.acknowledged
        message = self.client.dress({"channel": "/meta/connect", "ext": {"ack": ack}})
        self.deliver(Request(message))

    # The network

    @precondition(lambda self: self.requests)
    @rule(index=st.integers(0, 9), repeats=st.booleans())
    def request_arrives(self, index: int, repeats: bool) -> None:
        request = self.requests[index % len(self.requests)]
        if not repeats:
            self.requests.remove(request)
        self.arrived.append(request)
        self.deliver(request)

    @rule(age=st.integers(0, 3))
    def old_request_arrives_again(self, age: int) -> None:
        self.deliver(self.arrived[-1 - age % len(self.arrived)])

    def deliver(self, request: Request) -> None:
        asked = self.client.send(request.message)
        self.asked.append(asked)
        self.answers.append((request, asked))
        self.model.acknowledge(request.message["ext"]["ack"])
        self.look_at_answers()

    @precondition(lambda self: self.requests)
    @rule(index=st.integers(0, 9))
    def request_is_lost(self, index: int) -> None:
        self.requests.pop(index % len(self.requests))

    @precondition(lambda self: self.answers)
    @rule(index=st.integers(0, 9))
    def answer_arrives(self, index: int) -> None:
        """The client ignores an answer that it no longer waits for, as cometd.js does."""
        request, asked = self.answers[index % len(self.answers)]
        if asked.is_held:
            return
        self.answers.remove((request, asked))
        self.seen += asked.data
        reply = asked.elements[-1]
        if request is self.awaited and reply["successful"]:
            self.awaited = None
            self.received += asked.data
            self.acknowledged = reply["ext"]["ack"]
            self.batches.add(self.acknowledged)

    @precondition(lambda self: self.answers)
    @rule(index=st.integers(0, 9))
    def answer_is_lost(self, index: int) -> None:
        """Or the connection is lost while the server still holds the connect."""
        _, asked = self.answers.pop(index % len(self.answers))
        if asked.is_held:
            self.asked.remove(asked)
            self.server.abort(asked)

    @precondition(lambda self: self.answers)
    @rule()
    def connection_breaks_unnoticed(self) -> None:
        """The server will write to it, and nothing arrives."""
        for _, asked in self.answers:
            if asked.is_held:
                asked.wire.is_cut = True

    def look_at_answers(self) -> None:
        """Every new answer must be the model's next one."""
        for asked in list(self.asked):
            if self.client.session.held_connect is asked.exchange:
                continue
            self.asked.remove(asked)
            if asked.is_held:
                # It was written, and did not arrive.
                self.answers = [pair for pair in self.answers if pair[1] is not asked]
            if asked.exchange.is_superseded:
                assert asked.is_held or asked.events == []
                continue
            batch, numbers = self.model.answer()
            if asked.is_held:
                self.model.write_in_vain()
            else:
                assert asked.data == numbers
                assert asked.elements[-1]["ext"]["ack"] == batch

    # What must hold

    @invariant()
    def books_balance(self) -> None:
        assert self.server.balances()
        queue = self.client.session.queue
        assert queue.count == len(self.model.window) <= LIMIT
        tried = [*queue.in_flight().values(), *queue.returned.values()]
        here = [*queue.new, *(entry.message for entry in tried)]
        assert queue.size == sum(len(message.wire) for message in here)
        assert len(tried) >= sum(len(carried) > 0 for _, carried in self.model.window)
        assert self.server.bayeux.state.hub.counters.acks_out_of_range == self.model.out_of_range

    @invariant()
    def client_has_everything_once_and_in_order(self) -> None:
        assert self.received == self.taken[: len(self.received)]

    @invariant()
    def nothing_is_seen_for_the_first_time_out_of_order(self) -> None:
        first_seen = list(dict.fromkeys(self.seen))
        assert first_seen == sorted(first_seen)

    def teardown(self) -> None:
        """Once the network works again, every message must arrive."""
        for _ in range(LIMIT + 2):
            self.ask(patient=False)
            self.request_arrives(len(self.requests) - 1, repeats=False)
            self.answer_arrives(len(self.answers) - 1)
        assert self.received == self.taken
        assert self.model.window == []
        self.books_balance()


@pytest.mark.slow
def test_a_session_with_acks_loses_and_reorders_nothing_over_an_unreliable_network() -> None:
    run_state_machine_as_test(
        AckWindow,
        settings=settings(
            max_examples=20 * TIMES,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_a_message_is_handed_over_once_if_no_reply_is_lost() -> None:
    """Some messages find a held connect, others wait for the next one."""
    server = Server(partial(Ack, announces_batch=False))
    client = server.client(ext={"ack": True})
    client.subscribe("/a")
    ack = 0
    received: list[Any] = []
    for number in range(50):
        asked = client.connect(ext={"ack": ack})
        for offset in range(number % 3):
            server.for_extensions.publish("/a", (number, offset))
        server.turn()
        if asked.is_held:
            server.advance(30.1)
        received += [tuple(each) for each in asked.data]
        ack = asked.elements[-1]["ext"]["ack"]
    client.connect(ext={"ack": ack}, advice={"timeout": 0})
    assert server.bayeux.state.hub.counters.redelivered == 0
    assert len(received) == len(set(received)) == server.bayeux.state.hub.counters.accepted


@pytest.mark.parametrize("cut", [False, True])
def test_a_full_queue_has_room_again_when_its_batch_is_acked(cut: bool) -> None:
    server = Server(partial(Ack, announces_batch=False), max_queue=2)
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    for number in range(4):
        server.for_extensions.publish("/a", number)
    wire = Wire()
    wire.is_cut = cut
    client.connect(ext={"ack": 1}, wire=wire)
    server.for_extensions.publish("/a", 4)
    answer = client.connect(ext={"ack": 1 if cut else 2}, advice={"timeout": 0})
    assert answer.data == ([0, 1] if cut else [])
    assert client.session.queue.count == (2 if cut else 0)
    assert server.bayeux.state.hub.counters.dead == 3
    assert server.balances()
