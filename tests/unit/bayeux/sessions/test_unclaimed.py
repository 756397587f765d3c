"""Unclaimed sessions: messages wait for named sessions that do not exist, if a setting says so."""

from typing import Any

import pytest

from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.destinations import Destination
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.journal.schema import Kind
from tests.unit.bayeux.harness import Client, Json, Server, server_of
from tests.unit.bayeux.operated_server import letters
from tests.unit.bayeux.publish.test_point_to_point import (
    address,
    arriving,
    client_at,
    forced,
    named,
    publish,
    restarted,
    states,
    waiting,
)
from tests.unit.bayeux.sessions.test_login_events import heard, operator
from tests.unit.extensions.delivering import codes, connect
from tests.unit.journal.ledger import Writing

UNKNOWN = "404:user.ptp.unknownDestination,client/"
HERE, THERE = "203.0.113.7", "198.51.100.9"


def server_with(**options: Any) -> Server:
    return server_of(ptp_create_session=True, **options)


def entering(server: Server, network: str, name: str) -> Json:
    """The reply to a client that claims this name."""
    client = server.guest(caller=Caller(address=network, network=network))
    return client.handshake(ext={"delivery": {"session": name}}).reply


def test_a_message_waits_for_a_session_that_does_not_exist() -> None:
    server = server_with()
    bob = server.client()
    for number in range(3):
        assert states(address(bob, number, forced("joe/3"))) == ["QUEUED"]
    joe = arriving(server, "joe/3")
    assert connect(joe).data == [0, 1, 2]
    assert connect(joe).data == []
    server.turn()
    assert server.keeper.queues["joe/3"] == {}
    assert states(address(bob, 3, forced("joe/3"))) == ["OK"]
    assert server.balances()


def test_messages_to_an_unclaimed_session_need_not_be_forced() -> None:
    server = server_with()
    bob = server.client()
    assert not address(bob, 1, "joe/3")["successful"]
    address(bob, 2, forced("joe/3"))
    assert states(address(bob, 3, "joe/3")) == ["QUEUED"]
    assert connect(arriving(server, "joe/3")).data == [2, 3]


def test_the_client_that_claims_a_session_is_told_how_much_waits() -> None:
    server = server_with()
    address(server.client(), 1, forced("joe/3"))
    joe = server.guest()
    reply = joe.handshake(ext={"delivery": {"session": "joe/3"}}).reply
    agreed = reply["ext"]["delivery"]
    assert (agreed["resumed"], agreed["waiting"], agreed["retries"]) == (True, 1, -1)


def test_durable_messages_for_an_unclaimed_session_survive_a_restart() -> None:
    server = server_with()
    bob = server.client()
    address(bob, 1, forced("joe/3"))
    address(bob, 2, forced("joe/3"))
    publish(bob, "volatile", forced("joe/3"), persistent=False)
    after = restarted(server, ptp_create_session=True)
    assert states(address(after.client(), 3, forced("joe/3"))) == ["QUEUED"]
    assert connect(arriving(after, "joe/3")).data == [1, 2, 3]
    assert after.balances()


def test_a_claimed_session_is_still_claimed_after_a_restart() -> None:
    server = server_with()
    address(server.client(), 1, forced("joe/3"))
    connect(arriving(server, "joe/3"))
    server.turn()
    after = restarted(server, ptp_create_session=True)
    assert states(address(after.client(), 2, "joe/3", "joe")) == ["OK", "OK"]


def test_a_message_waits_in_memory_if_named_sessions_are_not_durable() -> None:
    server = server_with(durable="none")
    server.keeper.is_available = False
    assert states(address(server.client(), 1, forced("joe/3"))) == ["QUEUED"]
    assert "joe/3" not in server.keeper.sessions
    assert connect(arriving(server, "joe/3")).data == [1]


def test_messages_of_a_session_that_nobody_claims_in_time_become_dead_letters() -> None:
    server = server_with(max_session_timeout=60_000)
    address(server.client(), "hello", forced("joe/3"))
    server.advance(59.0)
    assert codes(server) == []
    server.advance(2.0)
    assert letters(server) == ["hello"]
    assert server.bayeux.state.sessions.named("joe/3") is None
    server.turn()
    assert "joe/3" not in server.keeper.sessions
    assert server.balances()


def test_a_message_becomes_a_dead_letter_if_the_claiming_client_takes_no_ptp() -> None:
    server = server_with()
    address(server.client(), "hello", forced("joe/3"))
    shy = arriving(server, "joe/3", ptp=False)
    assert connect(shy).data == []
    assert (letters(server), codes(server)) == (["hello"], ["user.ptp.denied"])
    server.turn()
    assert server.keeper.queues["joe/3"] == {}
    assert server.balances()


def test_messages_to_a_subject_do_not_go_to_its_unclaimed_session() -> None:
    server = server_with()
    bob = server.client()
    address(bob, "before", forced("joe"))
    address(bob, "own", forced("joe/3"))
    assert not address(bob, "unforced", "joe")["successful"]
    address(bob, "after", forced("joe"))
    assert waiting(server, "joe") == 2
    phone = named(server, "joe/1")
    assert connect(phone).data == []
    assert waiting(server, "joe") == 0
    address(bob, "both", "joe")
    assert connect(phone).data == ["both"]
    assert connect(arriving(server, "joe/3")).data == ["own"]


def test_the_client_that_claims_a_session_gets_what_waits_for_its_subject_too() -> None:
    server = server_with()
    bob = server.client()
    address(bob, 1, forced("joe"))
    address(bob, 2, forced("joe/3"))
    address(bob, 3, forced("joe"))
    assert connect(arriving(server, "joe/3")).data == [1, 2, 3]
    assert waiting(server, "joe") == 0


@pytest.mark.parametrize("name", ["joe/-3", "joe/1234567890", "anonymous/3"])
def test_a_session_name_that_no_client_could_have_is_an_unknown_destination(name: str) -> None:
    server = server_with()
    assert address(server.client(), 1, forced(name))["error"].startswith(UNKNOWN + name)


def test_a_message_to_a_stopped_session_creates_no_unclaimed_one() -> None:
    server = server_with()
    named(server, "joe/3").session.advance(SessionInput.STOP)
    assert address(server.client(), 1, forced("joe/3"))["error"].startswith(UNKNOWN)


def test_each_of_several_unclaimed_destinations_has_an_outcome() -> None:
    server = server_with(max_sessions_per_subject=1)
    joe = named(server, "joe/1")
    reply = address(server.client(), 1, forced("joe/2"), forced("ann/2"), "joe/1")
    assert states(reply) == ["ERROR", "QUEUED", "OK"]
    (failed, *_) = reply["ext"]["delivery"]["destinations"]
    assert failed["errorCode"] == "user.configuration.maxSession"
    assert connect(joe).data == [1]


def refused(server: Server, client: Client, name: str, data: object = 1) -> Json:
    before = len(server.bayeux.state.sessions)
    reply = address(client, data, forced(name))
    assert not reply["successful"]
    assert len(server.bayeux.state.sessions) == before
    return reply


def test_unclaimed_sessions_count_against_the_limit_of_their_subject() -> None:
    server = server_with(max_sessions_per_subject=2)
    bob = server.client()
    address(bob, 1, forced("joe/1"))
    address(bob, 2, forced("joe/2"))
    error = refused(server, bob, "joe/3")["error"]
    assert error == "403:user.configuration.maxSession,client/joe/3:sessions_exceeded"


def test_unclaimed_sessions_do_not_keep_clients_of_the_subject_out() -> None:
    server = server_with(max_sessions_per_subject=2)
    bob = server.client()
    address(bob, 1, forced("joe/1"))
    address(bob, 2, forced("joe/2"))
    assert all(entering(server, HERE, name)["successful"] for name in ("joe/3", "joe/4"))
    claiming = entering(server, HERE, "joe/1")
    assert claiming["error"].startswith("403:user.configuration.maxSession")


def test_a_session_name_counts_for_an_address_when_it_claims_the_session() -> None:
    server = server_with(max_names_per_address=1)
    bob = client_at(server, HERE)
    address(bob, 1, forced("joe/1"))
    address(bob, 1, forced("ann/1"))
    assert entering(server, HERE, "joe/1")["successful"]
    assert entering(server, HERE, "ann/1")["error"].startswith("403:user.configuration.maxSession")


def test_an_unclaimed_session_counts_for_the_address_and_the_subject_of_the_sender() -> None:
    server = server_with(quota_sessions=2)
    bob = client_at(server, HERE, "bob/1")
    address(bob, 1, forced("joe/1"))
    reply = refused(server, bob, "ann/1")
    assert reply["error"] == "429:sessions:budget_exceeded"
    assert reply["advice"]["reconnect"] == "retry"
    assert server.bayeux.state.sessions.usages.exceeded["sessions"] == 1
    assert entering(server, THERE, "bob/2")["error"].startswith("429:sessions")
    assert entering(server, THERE, "joe/2")["successful"]
    # From now on, joe/1 counts for its client.
    assert entering(server, THERE, "joe/1")["successful"]
    assert entering(server, THERE, "joe/3")["error"].startswith("429:sessions")
    assert address(bob, 1, forced("ann/1"))["successful"]


def test_the_bytes_in_an_unclaimed_session_count_for_the_sender() -> None:
    server = server_with(quota_waiting_bytes=1000)
    bob = client_at(server, HERE)
    address(bob, "x" * 2000, forced("joe/1"))
    server.advance(2.0)
    assert refused(server, bob, "ann/1")["error"] == "429:waiting_bytes:budget_exceeded"


def test_no_session_is_evicted_for_an_unclaimed_one() -> None:
    server = server_with(max_sessions=3, unconnected_share=0)
    bob = server.client()
    named(server, "ann/1").disconnect()
    named(server, "joe/1")
    error = refused(server, bob, "joe/3")["error"]
    assert error == "507:resource.exhaust,client/joe/3:destination_full"


def test_a_message_that_no_queue_has_room_for_creates_no_session() -> None:
    server = server_with(max_queue_bytes=1000)
    error = refused(server, server.client(), "joe/3", "x" * 1000)["error"]
    assert error == "507:resource.overflow.queue.bytes,client/joe/3:destination_full"


def test_no_unclaimed_session_is_created_while_the_store_is_away() -> None:
    server = server_with()
    bob = server.client()
    server.keeper.is_available = False
    error = refused(server, bob, "joe/3")["error"]
    assert error == "503:communication.noConnection,client/joe/3:store_unavailable"


def test_operators_are_told_of_the_first_client_but_not_of_the_end_of_an_unclaimed_session() -> (
    None
):
    server = server_with()
    bob = server.client()
    watcher = operator(server)
    address(bob, 1, forced("joe/3"))
    address(bob, 1, forced("ann/3"))
    assert heard(watcher) == []
    arriving(server, "joe/3")
    told = ("/sys/login", {"subject": "joe", "session": "client/joe/3"})
    assert heard(watcher) == [told]
    ann = server.bayeux.state.sessions.named("ann/3")
    assert ann is not None
    server.bayeux.life.ends.end_by_server(ann, server.now)
    assert heard(watcher) == []


def test_the_server_can_address_a_session_that_does_not_exist() -> None:
    server = server_with()
    qos = Qos()
    qos.destinations = (Destination("joe", 3, forces_queuing=True),)
    server.for_extensions.publish("/a", "hello", qos=qos)
    server.turn()
    assert connect(arriving(server, "joe/3")).data == ["hello"]


def test_the_journal_notes_a_dead_letter_of_a_session_that_takes_no_ptp() -> None:
    store = Writing()
    server = server_with(keeper=store, journal=store.writer)
    bob = server.client()
    address(bob, "hello", forced("joe/3"))
    arriving(server, "joe/3", ptp=False)
    server.turn()
    told = [each for each in store.events() if each.receiver == "joe/3" and each.msg is not None]
    assert [(each.kind, each.code) for each in told] == [(Kind.DEAD, "user.ptp.denied")]


class OnlyWithTheWord(SecurityPolicy):
    """Allows a name to clients that say please."""

    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        return None if handshake["ext"].get("word") == "please" else Denial()


def test_only_a_client_that_the_policy_allows_the_name_gets_what_waits() -> None:
    server = server_with()
    server.for_extensions.rights.policy = OnlyWithTheWord()
    address(server.client(), "hello", forced("joe/3"))
    assert entering(server, HERE, "joe/3")["error"].startswith("403")
    joe = server.guest()
    joe.handshake(ext={"ack": True, "word": "please", "delivery": {"session": "joe/3"}})
    server.turn()
    assert connect(joe).data == ["hello"]
