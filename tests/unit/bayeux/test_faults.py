"""A fault affects only its own session: failing extensions, odd moments, misspelt patterns."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Vote
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.message import Event
from holdfast.extensions.ack import Ack
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Server, Socket, Wire


class Bytes(SessionExtension):
    """Puts a value that JSON cannot represent into replies."""

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        if reply["channel"] != "/meta/handshake":
            reply["ext"] = {"odd": b"bytes"}


class ForThoseWhoAsk(ServerExtension):
    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return Bytes() if "odd" in (handshake.get("ext") or {}) else None


def test_a_reply_that_cannot_be_encoded_is_replaced_by_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(ForThoseWhoAsk())
    odd = server.client(ext={"odd": True})
    asked = odd.publish("/a", 1)
    assert asked.reply["error"] == "500::server_fault"
    assert asked.reply["channel"] == "/a"
    assert odd.connect().reply["error"] == "500::server_fault"
    assert "could not be encoded" in caplog.text


def test_a_reply_that_cannot_be_encoded_does_not_stop_the_clocks_of_other_sessions() -> None:
    server = Server(ForThoseWhoAsk(), timeout=5000, max_interval=10_000)
    people = [server.connected(ext={"odd": True}), *(server.connected() for _ in range(5))]
    held = [person.connect() for person in people]
    server.advance(6.0)
    assert not any(asked.is_held for asked in held)
    server.advance(11.0)
    assert len(server.bayeux.state.sessions) == 0


class BrokenWire(Wire):
    """Breaks its promise never to raise."""

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        raise RuntimeError("out of order")


@pytest.mark.parametrize("moment", ["end of a turn", "tick", "stop"])
def test_a_failing_connection_does_not_affect_others(
    moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(timeout=5000)
    people = [server.connected() for _ in range(3)]
    for person in people:
        person.subscribe("/a")
    people[1].connect(wire=BrokenWire())
    held = [people[0].connect(), people[2].connect()]
    if moment == "end of a turn":
        server.for_extensions.publish("/a", 1)
        server.turn()
    elif moment == "tick":
        server.advance(5.1)
    else:
        server.stop()
    assert not any(asked.is_held for asked in held)
    assert "could not be served" in caplog.text
    server.advance(20.0)
    assert server.balances()
    assert len(server.bayeux.state.sessions) == 0


class Faulty(ServerExtension):
    def event(self, event: Json) -> None:
        if event["channel"] == "/meta/disconnect":
            raise RuntimeError("out of order")


def test_a_session_goes_on_if_a_hook_fails_when_the_server_ends_it() -> None:
    server = Server(Faulty())
    socket = Socket()
    alice = server.connected(socket=socket, browser="mine")
    asked = alice.connect()
    with pytest.raises(RuntimeError):
        server.for_extensions.end_by_server(alice.session)
    assert asked.is_held
    assert not alice.session.is_gone


def test_lazy_messages_that_fall_due_between_connects_go_with_the_next() -> None:
    server = Server(channels={"/lazy": ChannelSettings(lazy_timeout=2000)}, max_interval=60_000)
    alice, bob = server.connected(), server.client()
    alice.subscribe("/lazy")
    bob.publish("/lazy", 1)
    server.advance(3.0)
    assert alice.connect().data == [1]


def test_lazy_messages_that_are_not_due_between_connects_keep_waiting() -> None:
    server = Server(channels={"/lazy": ChannelSettings(lazy_timeout=4000)}, max_interval=60_000)
    alice, bob = server.connected(), server.client()
    alice.subscribe("/lazy")
    bob.publish("/lazy", 1)
    server.advance(3.0)
    asked = alice.connect()
    assert asked.is_held
    server.advance(1.5)
    assert asked.data == [1]


def test_a_single_message_can_be_lazy() -> None:
    server = Server()
    alice = server.connected()
    alice.subscribe("/a")
    asked = alice.connect()
    server.for_extensions.publish("/a", "later", lazy_s=2.0)
    server.turn()
    assert asked.is_held
    server.advance(2.5)
    assert asked.data == ["later"]


def test_a_client_that_publishes_and_disconnects_in_one_request_gets_no_duplicates() -> None:
    server = Server(partial(Ack, announces_batch=False))
    alice = server.connected(ext={"ack": True})
    alice.subscribe("/a")
    held = alice.connect(ext={"ack": 1})
    goodbye = alice.send({"channel": "/a", "data": 1}, {"channel": "/meta/disconnect"})
    assert held.data + goodbye.data == [1]
    assert server.balances()


def test_a_late_message_on_an_old_websocket_does_not_take_the_session_back() -> None:
    server = Server()
    old, new = Socket(), Socket()
    alice = server.connected(socket=old, browser="mine")
    alice.subscribe("/a")
    again = server.guest(socket=new, browser="mine")
    again.client_id = alice.client_id
    again.connect()
    alice.publish("/b", 1)
    assert alice.session.pipe is new


@pytest.mark.parametrize("pattern", ["/secret/**/", "secret/*", "", "/a//b", "/a/*/b"])
def test_a_misspelt_pattern_raises_an_error_unless_it_only_ends_in_a_slash(pattern: str) -> None:
    bayeux = Server().bayeux
    if pattern == "/secret/**/":
        # A slash at the end is only another way to write the pattern.
        bayeux.state.rights.add(pattern, lambda *_: Vote.IGNORE)
        assert not bayeux.state.rights.are_open
        return
    with pytest.raises(ValueError):
        bayeux.state.rights.add(pattern, lambda *_: Vote.IGNORE)
    with pytest.raises(ValueError):
        bayeux.state.services.add(pattern, lambda _: None)


class Denies(ServerExtension):
    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        raise RuntimeError("no")


def test_the_ext_of_one_extension_is_left_out_if_another_fails_at_the_handshake() -> None:
    server = Server(partial(Ack, announces_batch=False), Denies())
    reply = server.guest().handshake(ext={"ack": True}).reply
    assert reply["error"] == "500::server_fault"
    assert "ext" not in reply


def test_a_queue_that_fills_up_twice_is_logged_once_and_then_with_a_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    server = Server(max_queue=1)
    alice, bob = server.connected(), server.client()
    alice.subscribe("/a")
    for number in range(3):
        bob.publish("/a", number)
    assert caplog.text.count("is full") == 1
    assert alice.connect().data == [0]
    for number in range(3):
        server.for_extensions.deliver_event(alice.session, {"channel": "/a", "data": number})
    assert caplog.text.count("is full") == 1
    # The second time is in the summary at the end of the window.
    server.bayeux.state.notices.end_window()
    assert caplog.messages[-1].endswith("is full: resource.overflow.queue.entries, 1 more")
    assert server.balances()


def test_a_session_that_ends_after_a_fault_in_its_request_leaves_nothing_in_its_queue() -> None:
    faults = iter([RuntimeError("the clock is broken")])

    def is_turn_over() -> bool:
        for fault in faults:
            raise fault
        return False

    server = Server(is_turn_over=is_turn_over)
    client = server.connected()
    client.subscribe("/a")
    session = client.session
    server.for_extensions.publish("/a", 1)
    with pytest.raises(RuntimeError, match="broken"):
        client.send({"channel": "/meta/connect"}, {"channel": "/meta/connect"})
    server.for_extensions.end_by_server(session)
    server.turn()
    # No answer is left that the message could go with.
    assert session.queue.count == 0
    assert server.balances()
