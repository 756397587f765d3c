"""`/meta/connect`: when it is answered at once, when it is held, and what ends the waiting."""

from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.extensions.ack import Ack
from tests.unit.bayeux.harness import Json, Server, Socket, Wire, server_of
from tests.unit.bayeux.second_lives import named

BARE: Json = {"channel": "/meta/connect", "successful": True}


def bare(reply: Json) -> bool:
    return {name: value for name, value in reply.items() if name != "id"} == BARE


def test_an_ack_of_a_session_that_did_not_ask_for_acks_is_refused() -> None:
    server = Server(partial(Ack, announces_batch=False))
    client = server.connected()
    for ack in (0, 1):
        reply = client.connect(ext={"ack": ack}).reply
        error = "400:user.illegalArgument,ack without ext.ack in the handshake:ext_invalid"
        assert reply["error"] == error
    assert client.connect().is_held


def test_an_ack_of_a_session_whose_messages_need_none_is_no_error() -> None:
    server = server_of()
    client = server.connected(ext={"ack": True, "delivery": {"oneway": True}})
    reply = client.connect(ext={"ack": 1}, advice={"timeout": 0}).reply
    assert reply["successful"], reply


# The table of decisions: the first row that fits counts


def test_a_connect_without_a_session_is_refused_at_once() -> None:
    reply = Server().guest(browser="known").connect().reply
    assert reply["error"] == "402:send the clientId:client_id_missing"
    assert reply["advice"] == {"reconnect": "handshake", "interval": 0, "timeout": 30000}


def test_only_an_untrusted_connect_without_a_cookie_is_advised_to_wait() -> None:
    server = Server()
    client = server.client()
    client.browser = None
    assert client.connect().reply["advice"]["interval"] == 3000
    client = Server(trust_client_session=True).guest()
    assert client.connect().reply["advice"]["interval"] == 0


def test_a_connect_beside_other_messages_is_answered_at_once() -> None:
    client = Server().connected()
    answer = client.send({"channel": "/meta/connect"}, {"channel": "/a", "data": 1})
    assert [reply["channel"] for reply in answer.elements] == ["/meta/connect", "/a"]
    assert client.connect().is_held


def test_a_connect_with_messages_waiting_is_answered_at_once_with_them() -> None:
    server = Server()
    alice, bob = server.connected(), server.client()
    alice.subscribe("/a")
    bob.publish("/a", 1)
    bob.publish("/a", 2)
    answer = alice.connect()
    assert answer.data == [1, 2]
    assert bare(answer.elements[-1])


def test_a_connect_gets_waiting_messages_even_if_its_browser_has_a_held_connect() -> None:
    server = Server()
    alice = server.connected(browser="shared")
    bob = server.connected(browser="shared")
    bob.subscribe("/a")
    assert alice.connect().is_held
    server.for_extensions.publish("/a", 1)
    answer = bob.connect()
    assert answer.data == [1]
    assert "advice" not in answer.elements[-1]


def test_a_first_connect_gets_multiple_clients_advice_if_its_browser_has_a_held_one() -> None:
    server = Server()
    alice = server.connected(browser="shared")
    assert alice.connect().is_held
    bob = server.client(browser="shared")
    assert bob.connect().reply["advice"]["multiple-clients"] is True


@pytest.mark.parametrize("fields", [{}, {"advice": {"timeout": 5000}}, {"advice": {}}])
def test_the_first_connect_is_answered_at_once_whatever_it_asks_for(fields: Json) -> None:
    client = Server().client()
    assert client.connect(**fields).reply["successful"]
    assert client.connect().is_held


def test_a_connect_after_a_first_connect_in_a_batch_is_held() -> None:
    client = Server().client()
    client.send({"channel": "/meta/connect"}, {"channel": "/a", "data": 1})
    assert client.connect().is_held


def test_a_connect_with_a_timeout_of_zero_is_answered_at_once() -> None:
    client = Server().connected()
    assert client.connect(advice={"timeout": 0}).reply["successful"]


def test_a_later_connect_without_messages_is_held_for_the_timeout() -> None:
    server = Server(timeout=20_000)
    asked = server.connected().connect()
    server.advance(19.9)
    assert asked.is_held
    server.advance(0.2)
    assert bare(asked.reply)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        (5000, 5),
        (5000.5, 5),
        (100_000, 20),
        (-1, 20),
        (None, 20),
        ("5000", 20),
        ([], 20),
        (1e308, 20),
    ],
)
def test_a_client_can_ask_for_a_shorter_timeout_than_the_servers_but_not_for_a_longer_one(
    timeout: Any, seconds: int
) -> None:
    server = Server(timeout=20_000)
    asked = server.connected().connect(advice={"timeout": timeout})
    server.advance(seconds - 0.1)
    assert asked.is_held
    server.advance(0.2)
    assert asked.reply["successful"]


def test_a_timeout_that_a_client_asks_for_counts_for_one_connect_only() -> None:
    server = Server(timeout=20_000)
    client = server.connected()
    assert not client.connect(advice={"timeout": 0}).is_held
    asked = client.connect()
    server.advance(19.9)
    assert asked.is_held


def test_the_timeout_of_a_session_overrides_the_servers() -> None:
    server = Server(timeout=20_000)
    client = server.connected()
    client.session.timeout_s = 2.0
    asked = client.connect()
    server.advance(2.1)
    assert not asked.is_held


def test_a_server_with_a_timeout_of_zero_answers_connects_at_once() -> None:
    assert bare(Server(timeout=0).connected().connect().reply)


# What ends the waiting


def test_a_message_releases_the_held_connect_at_the_end_of_the_turn() -> None:
    server = Server()
    alice, bob = server.connected(), server.client()
    alice.subscribe("/a")
    asked = alice.connect()
    bob.publish("/a", 1)
    bob.publish("/a", 2)
    assert asked.is_held
    server.turn()
    assert asked.data == [1, 2]
    assert bare(asked.elements[-1])


def test_a_message_on_another_channel_does_not_release_the_held_connect() -> None:
    server = Server()
    alice, bob = server.connected(), server.client()
    alice.subscribe("/a")
    asked = alice.connect()
    bob.publish("/b", 1)
    server.turn()
    assert asked.is_held


def test_other_requests_of_the_client_do_not_release_its_held_connect() -> None:
    server = Server()
    client = server.connected()
    asked = client.connect()
    client.subscribe("/a")
    assert client.publish("/a", 1).data == [1]
    server.turn()
    assert asked.is_held


def test_a_disconnect_releases_the_held_connect_with_the_advice_not_to_reconnect() -> None:
    client = Server().connected()
    asked = client.connect()
    assert client.disconnect().reply["successful"]
    assert asked.reply["successful"]
    assert asked.reply["advice"] == {"reconnect": "none", "interval": 0, "timeout": 30000}


def test_the_held_connect_of_a_session_that_the_server_ends_brings_a_disconnect_first() -> None:
    server = Server()
    client = server.connected()
    asked = client.connect()
    server.for_extensions.end_by_server(client.session)
    farewell, reply = asked.elements
    assert farewell == {"channel": "/meta/disconnect", "successful": True}
    assert reply["advice"]["reconnect"] == "none"
    assert client.connect().reply["error"] == "402::session_unknown"


def test_a_connect_whose_connection_closes_is_not_answered() -> None:
    server = Server()
    client = server.connected()
    asked = client.connect()
    server.abort(asked)
    server.advance(5.0)
    assert asked.is_held
    assert client.connect().is_held


def test_aborting_an_answered_request_changes_nothing() -> None:
    server = Server()
    client = server.connected()
    first = client.connect()
    second = client.connect()
    server.abort(first)
    assert client.session.held_connect is second.exchange
    server.abort(server.guest().publish("/a"))


# Superseded connects


def test_a_newer_connect_supersedes_the_held_connect() -> None:
    server = Server()
    client = server.connected()
    old = client.connect()
    new = client.connect()
    assert old.reply == {
        "channel": "/meta/connect",
        "id": "3",
        "successful": False,
        "error": "409::connect_superseded",
    }
    assert old.exchange.is_superseded
    assert new.is_held


def test_a_superseded_connect_takes_no_messages_with_it() -> None:
    server = Server()
    alice, bob = server.connected(), server.client()
    alice.subscribe("/a")
    old = alice.connect()
    bob.publish("/a", 1)
    new = alice.connect()
    assert old.events == []
    assert new.data == [1]


def test_a_connect_beside_other_messages_supersedes_the_held_connect() -> None:
    client = Server().connected()
    old = client.connect()
    client.send({"channel": "/a", "data": 1}, {"channel": "/meta/connect"})
    assert old.exchange.is_superseded


def test_a_refused_connect_does_not_supersede_the_held_connect() -> None:
    client = Server().connected()
    asked = client.connect()
    client.connect(id="¿")
    client.connect(ext=5)
    assert asked.is_held


def test_a_superseded_connect_over_a_websocket_gets_no_reply() -> None:
    client = Server().connected(socket=Socket(), browser="mine")
    client.connect()
    client.connect()
    assert client.hear() == []


# Advice


def test_advice_is_given_when_the_request_has_some() -> None:
    client = Server(timeout=20_000).client()
    first = client.connect(advice={"timeout": 0})
    assert first.reply["advice"] == {"reconnect": "retry", "interval": 0, "timeout": 20000}
    assert "advice" not in client.send({"channel": "/meta/connect"}, {"channel": "/a"}).elements[0]


def test_advice_is_given_when_the_transport_changes() -> None:
    client = Server(timeout=20_000).client()
    assert bare(client.connect().reply)
    wire = Wire(ConnectionType.CALLBACK_POLLING)
    changed = client.connect(wire=wire, advice={"timeout": 0})
    assert changed.reply["advice"]["timeout"] == 20000
    wire = Wire(ConnectionType.CALLBACK_POLLING)
    batch = client.send({"channel": "/meta/connect"}, {"channel": "/a", "data": 1}, wire=wire)
    assert bare(batch.elements[0])


def test_a_first_connect_on_another_transport_than_the_handshake_gets_advice() -> None:
    client = Server().client()
    wire = Wire(ConnectionType.CALLBACK_POLLING)
    assert client.connect(wire=wire).reply["advice"]["reconnect"] == "retry"


def test_advice_is_given_once_after_the_server_has_changed_it() -> None:
    server = Server()
    client = server.connected()
    session = client.session
    session.timeout_s, session.interval_s, session.is_advised = 5.0, 1.0, False
    asked = client.connect()
    server.advance(5.1)
    assert asked.reply["advice"] == {"reconnect": "retry", "interval": 1000, "timeout": 5000}
    asked = client.connect()
    server.advance(5.1)
    assert bare(asked.reply)


@pytest.mark.parametrize(
    ("interval", "advised"),
    [(2000, 2000), (0, 0), (50_000, 30_000), (-1, 500), (1.5, 500), (None, 500), ("5", 500)],
)
def test_the_advice_has_the_interval_that_the_client_asks_for_within_limits(
    interval: Any, advised: int
) -> None:
    client = Server(interval=500).client()
    reply = client.connect(advice={"interval": interval, "timeout": 0}).reply
    assert reply["advice"] == {"reconnect": "retry", "interval": advised, "timeout": 30000}


def test_an_interval_that_a_client_asked_for_counts_once() -> None:
    client = Server(interval=500).client()
    client.connect(advice={"interval": 2000, "timeout": 0})
    reply = client.connect(advice={"timeout": 0}).reply
    assert reply["advice"]["interval"] == 500


# When the server stops


@pytest.mark.parametrize(("rate", "interval"), [(4.0, 500), (20_000.0, 0)])
def test_a_stop_without_a_store_spreads_the_handshakes_that_follow(
    rate: float, interval: int
) -> None:
    server = server_of(handshake_rate=rate)
    asked = server.connected().connect()
    idle, *_ = [server.connected() for _ in range(3)]
    server.advance(1.0)
    named(server)
    server.keeper.is_available = False
    server.stop()
    assert asked.reply["successful"]
    advice = {"reconnect": "retry", "interval": interval, "timeout": 30000}
    assert asked.reply["advice"] == advice
    assert idle.connect().reply["advice"] == advice


def test_a_stop_tells_sessions_that_the_next_server_knows_to_return_at_once() -> None:
    server = server_of(handshake_rate=2)
    asked = [each.connect() for each in (server.connected(), named(server))]
    server.stop()
    assert [each.reply["advice"]["interval"] for each in asked] == [0, 0]


def test_a_stop_answers_held_connects_in_as_many_turns_as_they_take() -> None:
    has_time, ends = True, list[float]()
    server = Server(is_turn_over=lambda: not has_time, handshake_rate=1000)
    held = [server.connected().connect() for _ in range(5)]
    idle, has_time = server.connected(), False
    server.bayeux.stop(server.now, lambda: ends.append(server.now))
    assert [asked.is_held for asked in held].count(True) == 4
    # No connect is held meanwhile, and lost clients are not waited for.
    assert not idle.connect().is_held
    server.abort(held[4])
    for left in (3, 2, 1):
        assert ends == []
        server.flush()
        assert [asked.is_held for asked in held].count(True) == left
    server.turn()
    assert len(ends) == 1
    assert len({asked.reply["advice"]["interval"] for asked in held[:4]}) == 1


def test_a_stop_releases_held_connects_with_their_messages() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    server.for_extensions.publish("/a", 1)
    server.stop()
    assert asked.data == [1]
