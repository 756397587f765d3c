"""Releases before this one read outstanding requests in the records of their sessions."""

import pytest

from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.kept_requests import fields_of
from holdfast.bayeux.state.requests_in_records import record_again, record_requests, stop_recording
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Server
from tests.unit.extensions.requesting import POWER, Person, requesting
from tests.unit.extensions.test_listeners import listens
from tests.unit.extensions.test_reply_modes import named, named_responder


def recording() -> Server:
    """A server whose store an older release may open again."""
    server = requesting()
    state = server.bayeux.state

    def save(session: object) -> None:
        state.store.save(ChangedSession(session, state.node))  # type: ignore[arg-type]

    record_requests(state.requests, save)
    return server


def record_of(server: Server, key: str = "ann/1") -> SessionRecord:
    server.turn()
    record: SessionRecord = server.keeper.sessions[key]
    return record


def ends(person: Person) -> None:
    person.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})


def test_a_record_has_the_requests_of_its_session_until_they_end() -> None:
    server = recording()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    [kept] = record_of(server).requests
    assert (kept["channel"], kept["responders"], kept["replies"]) == (POWER, ["bob/1"], 0)
    bob.reply(bob.last())
    assert record_of(server).requests == []
    assert ann.last()["data"] == "!"


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_record_leaves_out_a_request_whose_end_is_on_its_way_to_the_store(
    is_answered: bool,
) -> None:
    """If the server is killed now, the next one must not find the request there alone."""
    server = recording()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=500)
    [kept] = record_of(server).requests
    server.keeper.is_silent = True
    if is_answered:
        bob.publish(bob.last()["ext"]["replyTo"], "in time")
    else:
        server.now += 1
        server.bayeux.tick(server.now)
    assert record_of(server).requests == []
    assert kept["address"] not in server.keeper.requests


def test_a_record_has_a_request_again_whose_end_the_store_refuses() -> None:
    server = recording()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=500)
    kept = record_of(server).requests
    server.keeper.outcome = PersistOutcome.REFUSED
    assert bob.reply(bob.last())["error"].startswith("503:")
    assert record_of(server).requests == kept
    server.now += 1
    server.bayeux.tick(server.now)
    assert record_of(server).requests == kept


def test_what_responders_said_is_read_from_the_record_as_it_was() -> None:
    server = recording()
    ann = named(server, "ann/1", request=True)
    cid, bob, _ = (named_responder(server, name) for name in ("cid/1", "bob/1", "dan/1"))
    ann.ask(timeout=5_000, request="all")
    cid.reply(cid.last())
    ends(bob)
    server.turn()
    fields = fields_of(record_of(server))
    said = {name.rpartition(" ")[2]: value for name, value in fields.items() if " " in name}
    assert said == {"cid/1": b"true", "bob/1": b"null"}
    assert said == {
        name.rpartition(" ")[2]: value
        for name, value in server.keeper.requests.items()
        if " " in name
    }


def test_an_ended_session_is_not_stored_again_because_of_its_requests() -> None:
    server = recording()
    ann, _ = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    ends(ann)
    server.turn()
    assert "ann/1" not in server.keeper.sessions


def test_records_of_an_earlier_process_have_no_requests_after_the_upgrade() -> None:
    server = recording()
    state = server.bayeux.state
    ann = named(server, "ann/1", request=True)
    named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    kept = record_of(server).requests
    # A restored session does not know what its record has.
    for session in state.sessions:
        session.records = None

    def save(session: object) -> None:
        state.store.save(ChangedSession(session, state.node))  # type: ignore[arg-type]

    [asker] = [each for each in state.sessions if each.key == "ann/1"]
    record_again(state.requests, [asker], save)
    assert record_of(server).requests == kept
    stop_recording(state.requests, state.sessions, save)
    assert record_of(server).requests == []


def test_records_have_no_requests_after_the_upgrade() -> None:
    server = recording()
    state = server.bayeux.state
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    stop_recording(
        state.requests,
        state.sessions,
        lambda session: state.store.save(ChangedSession(session, state.node)),
    )
    assert record_of(server).requests == []
    assert server.keeper.requests
    ann.ask(timeout=5_000, serial=2)
    assert record_of(server).requests == []
    bob.reply(bob.last())


def test_a_subscription_that_never_answers_is_one_that_older_releases_can_read() -> None:
    server = requesting()
    eve = listens(named(server, "eve/1"))
    record = record_of(server, "eve/1")
    assert record.silent_on == ["/**"]
    assert all("responds" not in qos for qos in record.subscription_qos.values())
    assert eve.session.subscriptions == {"/**"}
