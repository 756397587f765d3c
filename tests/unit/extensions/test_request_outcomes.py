"""A request has exactly one outcome, whatever is killed, refused or away meanwhile."""

from functools import partial
from typing import Any

import orjson
import pytest

from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.bayeux.state.kept_requests import fields_of, fields_of_all, rejoin, reopen_all
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.requests.request import ReplyMode
from tests.unit.bayeux.harness import Json, Server, Socket
from tests.unit.extensions.requesting import (
    POWER,
    Person,
    figures,
    requester,
    requesting,
    responder,
)
from tests.unit.extensions.test_reply_modes import judge, judging, named, named_responder

TIMEOUT = f"408:{POWER}:timeout"
NO_RESPONDERS = f"404:{POWER}:no_responders"


class Failing(ServerExtension):
    """Fails for events whose channel begins like this."""

    def __init__(self, beginning: str) -> None:
        self._beginning = beginning

    def event(self, event: Json) -> None:
        if event["channel"].startswith(self._beginning):
            raise ValueError


def killed(server: Server, away_s: float = 0, **options: Any) -> Server:
    """The next server: the store has all that it was sent, but none of its answers was heard."""
    after = requesting(keeper=server.keeper, after=server, **options)
    after.sleep(away_s)
    after.keeper.outcome, after.keeper.is_silent = PersistOutcome.KEPT, False
    after.keeper.is_available = True
    after.keeper.forget_answers()
    without_session = partial(restore_without_session, after.bayeux.life)
    for record, entries in server.keeper.load(without_session):
        restore(after.bayeux.life, record, entries, after.now)
    state = after.bayeux.state
    reopen_all(state, dict(server.keeper.requests), after.now)
    rejoin(state.requests, [*state.sessions, *state.waiting_places.queues()])
    return after


def outcomes(server: Server, before: Person, wait_s: float = 0) -> list[object]:
    """All that the requester gets to know, until all deadlines are over."""
    ann = Person(server, socket=Socket(), browser=before.browser)
    ann.shake({"delivery": {"session": "ann/1"}, "ack": True, "request": before.ret})
    ann.connect(ext={"ack": 0})
    heard = ann.heard()
    server.advance(wait_s)
    ann.connect(ext={"ack": ann.session.queue.batch})
    return [each.get("error", each["data"]) for each in heard + ann.heard()]


def replies_unheard(person: Person, request: Json, data: object = "!") -> None:
    """Send a reply; the store keeps it, and its answer is never heard."""
    person.publish(request["ext"]["replyTo"], data)


def test_a_request_ends_with_its_reply_although_the_server_is_killed_before_it_knows() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    replies_unheard(bob, bob.last())
    after = killed(server)
    assert after.bayeux.state.requests.outstanding == 0
    assert outcomes(after, ann, wait_s=10) == ["!"]
    assert not after.keeper.requests


def test_an_error_ends_a_request_although_the_server_is_killed_before_it_knows() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    bob.last()
    server.now += 6
    server.bayeux.tick(server.now)
    server.bayeux.flush(server.now)
    assert not server.keeper.requests
    assert outcomes(killed(server), ann, wait_s=10) == [TIMEOUT]


def test_a_request_goes_on_if_the_server_is_killed_before_its_error_is_stored() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    bob.last()
    server.keeper.is_available = False
    server.advance(6)
    assert server.keeper.requests
    assert outcomes(killed(server), ann, wait_s=10) == [TIMEOUT]


def test_a_requester_is_told_the_end_when_the_store_takes_it_again() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    bob.last()
    server.keeper.outcome = PersistOutcome.REFUSED
    server.advance(6)
    assert ann.heard() == []
    server.keeper.outcome = PersistOutcome.KEPT
    server.advance(2)
    assert ann.last()["error"] == TIMEOUT
    server.advance(5)
    assert ann.heard() == []
    assert not server.keeper.requests
    assert server.bayeux.state.requests.outstanding == 0


def test_a_requester_that_leaves_is_not_told_the_end_that_could_not_be_stored() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    bob.last()
    server.keeper.outcome = PersistOutcome.REFUSED
    server.advance(6)
    ann.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.turn()
    requests = server.bayeux.state.requests
    assert (requests.outstanding, server.keeper.requests) == (0, {})
    server.advance(5)


def test_a_reply_to_all_counts_once_although_the_server_is_killed_before_it_knows() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    named_responder(server, "zoe/1")
    ann.ask(timeout=5_000, request="all")
    request = bob.last()
    replies_unheard(bob, request)
    after = killed(server)
    bob = Person(after, socket=Socket(), browser=bob.browser)
    bob.shake({"delivery": {"session": "bob/1"}, "ack": True})
    assert bob.reply(request)["error"].endswith(":duplicate_reply")
    assert outcomes(after, ann, wait_s=10) == ["!", {"replies": 1, "missing": 1}]
    assert not after.keeper.requests


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_reply_whose_fate_was_unknown_is_the_outcome_exactly_if_it_was_kept(
    is_kept: bool,
) -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    request = bob.last()
    keeper = server.keeper
    keeper.is_silent = True
    keeper.outcome = final = PersistOutcome.KEPT if is_kept else PersistOutcome.REFUSED
    bob.publish(request["ext"]["replyTo"], "!")
    keeper.is_silent, keeper.outcome = False, PersistOutcome.KEPT
    keeper.answer_late(PersistOutcome.UNKNOWN)
    server.advance(6)
    assert ann.heard() == []
    keeper.answer_late(final)
    server.advance(2)
    event = ann.last()
    assert event.get("error", event["data"]) == ("!" if is_kept else TIMEOUT)
    assert not keeper.requests


def test_a_request_is_stored_in_the_same_step_as_its_message() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.publish(POWER, "?", ext={"replyTo": ann.address(), "timeout": 5_000})
    after = killed(server)
    bob = Person(after, socket=Socket(), browser=bob.browser)
    bob.shake({"delivery": {"session": "bob/1"}, "ack": True})
    bob.connect(ext={"ack": 0})
    assert bob.reply(bob.last())["successful"]
    assert outcomes(after, ann) == ["!"]


@pytest.mark.parametrize("has_responder", [True, False])
def test_a_request_of_a_named_session_is_accepted_when_the_store_has_it(
    *, has_responder: bool
) -> None:
    server = requesting()
    ann = named(server, "ann/1", request=True)
    if has_responder:
        responder(server)
    asked = ann.publish(POWER, "?", ext={"replyTo": ann.address(), "timeout": 5_000})
    assert asked.is_held
    assert server.keeper.requests
    assert outcomes(killed(server), ann, wait_s=10) == [NO_RESPONDERS]


def test_a_request_that_waits_for_others_on_its_channel_is_accepted_when_the_store_has_it() -> None:
    server = requesting()
    ann, _ = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    server.keeper.is_silent = True
    server.client().publish(POWER, "before")
    ext = {"replyTo": ann.address(), "timeout": 5_000, "delivery": {"persistent": False}}
    assert ann.publish(POWER, "?", ext=ext).is_held
    server.keeper.answer_late(PersistOutcome.KEPT)
    assert server.keeper.requests
    assert ann.hear() == []
    server.turn()
    assert [each["successful"] for each in ann.hear()] == [True]
    assert outcomes(killed(server), ann, wait_s=10) == [TIMEOUT]


def test_a_request_of_a_named_session_is_refused_while_the_store_is_away() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), responder(server)
    server.keeper.is_available = False
    assert ann.ask()["error"] == "503:communication.noConnection:store_unavailable"
    assert bob.heard() == []
    assert figures(server) == {"unsent": 1}


def test_a_request_that_the_store_refuses_leaves_nothing_there() -> None:
    server = requesting()
    ann, _ = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    server.keeper.outcome = PersistOutcome.REFUSED
    assert ann.ask()["error"].startswith("503:")
    assert not server.keeper.requests


def test_requests_of_a_session_that_is_gone_are_removed_at_the_next_start() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    cleo = named_responder(server, "cleo/1")
    ann.ask(timeout=5_000)
    judge_named(bob)
    cleo.last()
    assert len(server.keeper.requests) == 2
    del server.keeper.sessions["ann/1"]
    assert not killed(server).keeper.requests


def judge_named(person: Person) -> None:
    judge(person, person.last(), text="disk full")


def test_an_unreadable_request_ends_and_the_others_go_on() -> None:
    server = requesting()
    ann, _ = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    server.keeper.requests |= {"/ret/x/1": b"{", "/ret/x/2": b'{"requester": "ann/1"}'}
    after = killed(server)
    assert after.bayeux.state.requests.outstanding == 1
    assert len(after.keeper.requests) == 1


def test_requests_that_an_earlier_release_kept_with_their_session_go_on() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    cleo, _ = named_responder(server, "cleo/1"), named_responder(server, "zoe/1")
    ann.ask(timeout=5_000, request="all")
    bob.reply(bob.last())
    judge(cleo, cleo.last(), text="disk full")
    (request,) = server.bayeux.state.requests.by_message().values()
    record = server.keeper.sessions["ann/1"]
    record.requests = [
        {
            "address": request.address,
            "call": None,
            "channel": POWER,
            "deadline_ms": request.deadline_ms,
            "id": request.id,
            "is_work": False,
            "mode": ReplyMode.ALL.value,
            "refusal": ["user.update.error", "disk full"],
            "replies": 1,
            "reply_to": request.reply_to,
            "responders": ["zoe/1"],
            "spoken": ["bob/1", "cleo/1"],
            "timeout_ms": 5_000,
        }
    ]
    fields = fields_of(record)
    assert {name: orjson.loads(value) for name, value in fields.items() if " " in name} == {
        f"{request.address} bob/1": True,
        f"{request.address} cleo/1": ["user.update.error", "disk full"],
    }
    server.keeper.requests = dict(fields)
    after = killed(server)
    assert outcomes(after, ann, wait_s=10) == ["!", {"replies": 1, "missing": 1}]


def test_a_later_session_of_the_same_name_is_no_responder_after_a_restart() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    named_responder(server, "zoe/1")
    ann.ask(timeout=60_000)
    bob.last()
    bob.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.turn()
    named_responder(server, "bob/1")
    (request,) = killed(server).bayeux.state.requests.by_message().values()
    assert request.responders == {"zoe/1"}


# Nobody is left


def test_a_request_whose_only_receiver_has_ended_before_its_hand_over_has_no_responders() -> None:
    server = requesting()
    ann, bob = Person.come(server, {"request": True}), judging(server)
    assert bob.socket is not None
    bob.socket.is_full = True
    ann.ask()
    bob.disconnect()
    assert ann.last()["error"] == NO_RESPONDERS


@pytest.mark.parametrize("delivery", [True, {"session": "bob/1", "timeout": 1_000}])
def test_a_request_whose_receivers_have_lost_contact_has_no_responders(delivery: object) -> None:
    server = requesting()
    ann = Person.come(server, {"request": True})
    bob = Person.come(server, {"delivery": delivery, "ack": True})
    bob.subscribe(POWER)
    bob.connect(ext={"ack": 0})
    ann.ask(timeout=200_000)
    bob.heard()
    assert bob.socket is not None
    server.close(bob.socket)
    server.advance(1)
    ann.connect()
    server.advance(server.bayeux.state.options.max_interval_s + 2)
    assert ann.last()["error"] == NO_RESPONDERS
    assert figures(server) == {"no_responders": 1}


def test_a_request_that_waits_behind_a_refused_message_has_no_responders() -> None:
    server = requesting()
    ann, bob = Person.come(server, {"request": True}), judging(server)
    bob.subscribe("/other")
    ann.say("/other", 1)
    first = bob.last()
    ann.ask()
    judge(bob, first, "communication.resource.temporary.unavailable")
    assert ann.last()["error"] == NO_RESPONDERS


def test_a_verdict_of_one_receiver_is_the_error_although_others_have_ended() -> None:
    server = requesting()
    ann, bob, cleo = Person.come(server, {"request": True}), judging(server), judging(server)
    ann.ask()
    judge(bob, bob.last())
    cleo.heard()
    cleo.disconnect()
    assert ann.last()["error"] == f"500:{POWER},user.update.error:responder_error"


def test_a_verdict_that_ends_the_session_is_the_error() -> None:
    server = requesting()
    ann, bob = Person.come(server, {"request": True}), judging(server)
    ann.ask()
    code = "communication.resource.temporary.unavailable"
    judge(bob, bob.last(), code)
    assert ann.last()["error"] == f"500:{POWER},{code}:responder_error"


# Memory


def test_an_ended_request_is_forgotten_after_some_minutes() -> None:
    server = requesting()
    ann, bob = Person.come(server, {"request": True}), responder(server)
    ann.ask(timeout=1_000)
    request = bob.last()
    server.advance(2)
    ann.heard()
    for _ in range(290):
        server.advance(1)
        bob.connect()
        ann.connect()
    assert bob.reply(request)["error"].endswith(":late_reply")
    for _ in range(20):
        server.advance(1)
        bob.connect()
        ann.connect()
    assert bob.reply(request)["error"].endswith(":reply_denied")


def test_a_store_that_lost_everything_gets_the_requests_again() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    cleo = named_responder(server, "cleo/1")
    ann.ask(timeout=5_000)
    judge_named(bob)
    cleo.last()
    server.keeper.requests.clear()
    server.keeper.save_requests(fields_of_all(server.bayeux.state.requests))
    (request,) = killed(server).bayeux.state.requests.by_message().values()
    assert request.responders == {"cleo/1"}
    assert request.spoken.keys() == {"bob/1"}
    assert request.refusal == ("user.update.error", "disk full")


def ends(person: Person) -> None:
    person.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    person.server.turn()


def test_a_reply_still_counts_after_a_restart_although_its_responder_has_ended() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    named_responder(server, "zoe/1")
    ann.ask(timeout=5_000, request="all")
    bob.reply(bob.last())
    ends(bob)
    assert outcomes(killed(server), ann, wait_s=10) == ["!", {"replies": 1, "missing": 1}]


def test_a_refusal_is_the_error_after_a_restart_although_its_responder_has_ended() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    zoe = named_responder(server, "zoe/1")
    ann.ask(timeout=60_000)
    judge_named(bob)
    ends(bob)
    after = killed(server)
    zoe = Person(after, socket=Socket(), browser=zoe.browser)
    zoe.shake({"delivery": {"session": "zoe/1"}, "ack": True})
    ends(zoe)
    assert outcomes(after, ann) == [f"500:{POWER},user.update.error:responder_error"]


def test_a_request_has_no_responders_if_the_last_one_ended_before_its_reply_was_refused() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=5_000)
    request = bob.last()
    keeper = server.keeper
    keeper.is_silent, keeper.outcome = True, PersistOutcome.REFUSED
    bob.publish(request["ext"]["replyTo"], "!")
    keeper.is_silent, keeper.outcome = False, PersistOutcome.KEPT
    ends(bob)
    keeper.answer_late(PersistOutcome.REFUSED)
    server.turn()
    assert ann.last()["error"] == NO_RESPONDERS
    assert not keeper.requests


def test_a_requester_that_cannot_be_told_keeps_no_other_from_being_told() -> None:
    server = requesting()
    requests = server.bayeux.state.requests
    first, second = requester(server), requester(server)
    server.for_extensions.extend(Failing(first.ret))
    for serial in (1, 2):
        # A lost wake-up would show in the second round.
        bob = responder(server)
        for each in (first, second):
            each.ask(serial=serial)
        bob.disconnect()
        assert second.last()["error"] == NO_RESPONDERS
        assert first.heard() == []
    assert (requests.outstanding, server.bayeux.state.backlog.failures) == (0, 2)
