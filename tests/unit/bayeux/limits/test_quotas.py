"""Quotas: an address or subject that has reached one gets no more, and others do not suffer."""

from typing import Any

from holdfast.bayeux.limits.usage import Usages
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, Json, Server
from tests.unit.bayeux.second_lives import RestartableServer, again

HERE, THERE, ELSEWHERE = "203.0.113.7", "198.51.100.9", "192.0.2.5"
OVER = "429:{}:budget_exceeded"


def server(shards: int = 1, **limits: int) -> Server:
    given = {"sessions": 0, "subscriptions": 0, "waiting_bytes": 0, **limits}
    quotas: dict[str, Any] = {f"quota_{name}": limit for name, limit in given.items()}
    return Server(DeliveryWire, shards=shards, durable="none", **quotas)


def client(server: Server, network: str, name: str | None = None) -> Client:
    ext: Json = {"delivery": {"session": name} if name else True}
    return server.client(caller=Caller(address=network, network=network), ext=ext)


def enter(server: Server, network: str, name: str | None = None) -> Json:
    """The reply to a handshake."""
    ext: Json = {"delivery": {"session": name} if name else True}
    return Client(server, caller=Caller(address=network, network=network)).handshake(ext=ext).reply


def usages(server: Server) -> Usages:
    return server.bayeux.state.sessions.usages


def test_an_address_may_have_a_limited_number_of_sessions() -> None:
    place = server(sessions=2)
    first, second = client(place, HERE), client(place, HERE)
    refused = enter(place, HERE)

    assert refused["error"] == OVER.format("sessions")
    assert refused["advice"]["reconnect"] == "handshake"
    assert refused["advice"]["interval"] >= 5000
    assert enter(place, THERE)["successful"]
    assert first.subscribe("/a").reply["successful"]
    second.disconnect()
    assert enter(place, HERE)["successful"]
    exceeded = usages(place).exceeded
    assert {kind: count for kind, count in exceeded.items() if count} == {"sessions": 1}


def test_one_of_several_shards_admits_its_part_of_the_sessions_of_an_address() -> None:
    quotas: dict[str, Any] = {
        "quota_sessions": 4,
        "quota_subscriptions": 4,
        "quota_waiting_bytes": 0,
    }
    place = Server(DeliveryWire, durable="none", shards=2, **quotas)
    first, _ = client(place, HERE), client(place, HERE)
    assert enter(place, HERE)["error"] == OVER.format("sessions")
    assert enter(place, THERE)["successful"]
    assert first.subscribe("/a").reply["successful"]
    assert first.subscribe("/b").reply["successful"]
    assert first.subscribe("/c").reply["error"] == OVER.format("subscriptions")


def test_a_shard_has_all_sessions_of_a_subject_so_their_limit_is_not_divided() -> None:
    quotas: dict[str, Any] = {
        "quota_sessions": 2,
        "quota_subscriptions": 0,
        "quota_waiting_bytes": 0,
    }
    place = Server(DeliveryWire, durable="none", shards=2, **quotas)
    client(place, HERE, "ada/1")
    client(place, THERE, "ada/2")
    assert enter(place, ELSEWHERE, "ada/3")["error"] == OVER.format("sessions")


def test_one_of_several_shards_admits_its_part_of_the_names_of_an_address() -> None:
    place = Server(DeliveryWire, max_names_per_address=4, durable="none", shards=2)
    for name in ("ada/1", "bob/1"):
        client(place, HERE, name)
    assert enter(place, HERE, "carl/1")["error"].startswith("403:")
    assert enter(place, THERE, "carl/1")["successful"]


def test_a_subject_may_have_a_limited_number_of_sessions_from_all_addresses() -> None:
    place = server(sessions=2)
    client(place, HERE, "ada/1")
    client(place, THERE, "ada/2")

    assert enter(place, ELSEWHERE, "ada/3")["error"] == OVER.format("sessions")
    assert enter(place, ELSEWHERE, "bob/1")["successful"]
    # A takeover adds no session.
    assert enter(place, ELSEWHERE, "ada/1")["successful"]


def test_all_sessions_of_a_subject_are_found_in_their_order_but_none_of_anonymous() -> None:
    server = Server(DeliveryWire)
    sessions = [
        server.client(ext={"delivery": {"session": name}}).session
        for name in (*(f"joe/{number}" for number in range(1, 10)), "joe")
    ]
    server.client()
    assert server.bayeux.state.sessions.of_subject("joe") == sessions
    assert server.bayeux.state.sessions.of_subject("anonymous") == []


def test_the_subscriptions_of_all_sessions_of_a_subject_count_together() -> None:
    place = server(subscriptions=3)
    one, other = client(place, HERE, "ada/1"), client(place, THERE, "ada/2")
    assert one.subscribe("/a", "/b").reply["successful"]

    refused = other.subscribe("/c", "/d").reply
    assert refused["error"] == OVER.format("subscriptions")
    assert refused["advice"]["reconnect"] == "retry"
    assert other.subscribe("/c").reply["successful"]
    assert other.subscribe("/c").reply["successful"]
    assert client(place, ELSEWHERE, "bob/1").subscribe("/a", "/b", "/c").reply["successful"]
    one.unsubscribe("/a")
    place.advance(1.1)
    assert other.subscribe("/d").reply["successful"]


class Secrecy(SecurityPolicy):
    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        return Denial() if channel.startswith("/secret/") else None


def test_denied_subscriptions_use_up_no_quota() -> None:
    place = server(subscriptions=3)
    place.bayeux.state.rights.policy = Secrecy()
    eve, ada = client(place, HERE), client(place, HERE)
    for number in range(5):
        denied = eve.subscribe(f"/secret/{number}").reply
        assert denied["error"].startswith("403")

    assert ada.subscribe("/a", "/b").reply["successful"]
    assert eve.subscribe("/a", "/b").reply["error"] == OVER.format("subscriptions")
    assert eve.subscribe("/a").reply["successful"]


def test_a_session_that_no_address_opened_counts_for_the_first_that_takes_it_over() -> None:
    """So it is with a restored session, of which the server does not know who opened it."""
    place = server(sessions=1)
    client(place, "", "ada/1")
    client(place, HERE, "ada/1")
    refused = enter(place, HERE)
    assert refused["error"] == OVER.format("sessions")

    # It still counts there after a takeover from elsewhere.
    client(place, THERE, "ada/1")
    assert enter(place, THERE)["successful"]
    assert enter(place, HERE)["error"] == OVER.format("sessions")


def test_a_restored_session_counts_for_the_address_from_which_its_client_returns() -> None:
    before = RestartableServer(quota_sessions=1)
    caller = Caller(address=HERE, network=HERE)
    ada = before.client(caller=caller, ext={"ack": True, "delivery": {"session": "ada/1"}})
    after = before.reborn()
    back = again(ada, after)
    back.caller = caller
    assert back.connect(advice={"timeout": 0}).reply["successful"]
    assert enter(after, HERE)["error"] == OVER.format("sessions")
    assert enter(after, THERE)["successful"]


def test_a_subject_with_too_many_waiting_bytes_gets_no_more_sessions_or_subscriptions() -> None:
    place = server(waiting_bytes=1000)
    slow = client(place, HERE, "ada/1")
    slow.subscribe("/a")
    writer = client(place, THERE)
    for _ in range(2):
        writer.publish("/a", "x" * 600)
    place.advance(1.1)

    assert enter(place, ELSEWHERE, "ada/2")["error"] == OVER.format("waiting_bytes")
    assert slow.subscribe("/b").reply["error"] == OVER.format("waiting_bytes")
    # Nothing is lost, and later messages are delivered.
    writer.publish("/a", "last")
    assert slow.connect().data == ["x" * 600, "x" * 600, "last"]


def test_a_caller_on_this_machine_is_not_counted_and_zero_means_no_limit() -> None:
    place = server(sessions=1)
    assert all(enter(place, "")["successful"] for _ in range(3))
    place = server()
    assert all(enter(place, HERE, f"ada/{n}")["successful"] for n in range(1, 4))


def test_an_ended_session_leaves_nothing_in_the_usages() -> None:
    place = server(sessions=5)
    for each in (client(place, HERE, "ada/1"), client(place, THERE)):
        each.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})

    known = usages(place)
    assert (known._of_subject, known._of_network, known._networks) == ({}, {}, {})
