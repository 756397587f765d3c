"""Messages whose transport is in another process: a receipt says whether it took them."""

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.receipts import Receipt, Taken
from holdfast.delivery.messages.message import Event
from tests.unit.bayeux.harness import Asked, Client, Server, Socket, Wire, server_of

ACK = {"ack": True}


class FarWire(Wire):
    """The connection of another process under one request."""

    def __init__(self) -> None:
        super().__init__()
        self.receipt = Receipt()

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        return super().answer(exchange, messages) and (self.receipt if messages else True)


class FarSocket(Socket):
    """A WebSocket of another process."""

    def __init__(self) -> None:
        super().__init__()
        self.receipts: list[Receipt] = []

    def push(self, messages: Sequence[Event]) -> Taken:
        super().push(messages)
        self.receipts.append(Receipt())
        return self.receipts[-1]


@pytest.fixture
def server() -> Server:
    return server_of(allow_message_delivery_during_handshake=True)


def reader(server: Server, **fields: Any) -> Client:
    client = server.connected(**fields)
    client.subscribe("/news")
    return client


def ask(client: Client) -> tuple[Asked, FarWire]:
    wire = FarWire()
    return client.connect(wire=wire), wire


def publish(server: Server, *data: object) -> None:
    for each in data:
        server.for_extensions.publish("/news", each)
    server.turn()


def acked(server: Server) -> int:
    return server.bayeux.state.hub.counters.acked


def test_messages_are_settled_when_their_receipt_comes(server: Server) -> None:
    client = reader(server)
    asked, wire = ask(client)
    publish(server, 1)
    assert asked.data == [1]
    assert (client.session.queue.count, acked(server)) == (1, 0)
    wire.receipt.arrive(is_taken=True, now=server.now)
    assert (client.session.queue.count, acked(server)) == (0, 1)
    assert server.balances()


def test_messages_that_were_not_taken_come_with_the_next_connect(server: Server) -> None:
    client = reader(server)
    _, wire = ask(client)
    publish(server, 1, 2)
    wire.receipt.arrive(is_taken=False, now=server.now)
    asked = client.connect()
    server.turn()
    assert asked.data == [1, 2]
    assert (client.session.queue.count, acked(server)) == (0, 2)


def test_nothing_overtakes_messages_without_a_receipt(server: Server) -> None:
    client = reader(server)
    _, wire = ask(client)
    publish(server, 1)
    asked = client.connect()
    publish(server, 2)
    assert asked.is_held
    wire.receipt.arrive(is_taken=False, now=server.now)
    server.turn()
    assert asked.data == [1, 2]


def test_what_came_meanwhile_leaves_when_the_receipt_has_come(server: Server) -> None:
    client = reader(server)
    _, wire = ask(client)
    publish(server, 1)
    asked = client.connect()
    publish(server, 2)
    wire.receipt.arrive(is_taken=True, now=server.now)
    server.turn()
    assert asked.data == [2]


def test_an_answer_without_messages_needs_no_receipt(server: Server) -> None:
    client = reader(server)
    asked, _ = ask(client)
    server.advance(40.0)
    assert not asked.is_held
    assert not client.session.pauses


def test_a_receiver_that_acks_does_not_wait_for_receipts(server: Server) -> None:
    client = reader(server, ext=ACK)
    asked, wire = ask(client)
    publish(server, 1)
    assert asked.data == [1]
    assert not client.session.pauses
    wire.receipt.arrive(is_taken=False, now=server.now)
    assert client.session.queue.count == 1


def test_a_receipt_after_the_end_of_the_session_settles_nothing(server: Server) -> None:
    client = reader(server)
    _, wire = ask(client)
    publish(server, 1)
    session = client.session
    server.for_extensions.end_by_server(session)
    server.turn()
    wire.receipt.arrive(is_taken=True, now=server.now)
    assert session.queue.count == 0
    assert server.balances()


def test_a_second_receipt_changes_nothing(server: Server) -> None:
    client = reader(server)
    _, wire = ask(client)
    publish(server, 1)
    wire.receipt.arrive(is_taken=True, now=server.now)
    wire.receipt.arrive(is_taken=False, now=server.now)
    assert (client.session.queue.count, acked(server), client.session.pauses) == (0, 1, 0)


@pytest.mark.parametrize("is_taken", [True, False])
def test_pushes_follow_each_other_receipt_by_receipt(server: Server, is_taken: bool) -> None:
    socket = FarSocket()
    client = reader(server, socket=socket)
    client.hear()
    publish(server, 1)
    publish(server, 2)
    assert [event["data"] for event in client.hear()] == [1]
    socket.receipts[0].arrive(is_taken=is_taken, now=server.now)
    server.turn()
    expected = [2] if is_taken else [1, 2]
    assert [event["data"] for event in client.hear()] == expected
    socket.receipts[1].arrive(is_taken=True, now=server.now)
    assert (client.session.queue.count, acked(server)) == (0, 2)
    assert server.balances()
