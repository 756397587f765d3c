"""Requests reach sessions of all shards, and each has one outcome."""

from typing import Any

import pytest

from holdfast.bayeux.state.kept_requests import fields_of_all, passing_fields, reopen_all
from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Json
from tests.unit.bayeux.publish.asking import (
    NO_RESPONDERS,
    POWER,
    TIMEOUT,
    asking,
    comes,
    comes_back,
    guest,
    listening,
    said,
)
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.requesting import Person

SERVICE = "/service/data/power"

# By their first letters: ann and carl have their homes at shard 1, bob and dan at shard 0.


@pytest.fixture
def world() -> World:
    return asking(2)


def asked(world: World, person: Person, **ext: Any) -> Json:
    reply = person.ask(timeout=5_000, **ext)
    assert reply["successful"]
    world.read_all()
    return reply


def heard(world: World, person: Person) -> list[Any]:
    world.read_all()
    return [said(event) for event in person.heard()]


def answered(world: World, person: Person, event: Json, data: Any = "!") -> Json:
    """The reply to a reply, which the shard of the requester has decided about."""
    person.heard()
    waiting = person.publish(event["ext"]["replyTo"], data)
    world.read_all()
    person.server.turn()
    return person._reply(waiting)


def outstanding(world: World) -> int:
    return sum(each.server.bayeux.state.requests.outstanding for each in world.shards)


@pytest.mark.parametrize("name", ["ann/1", "bob/1"])
def test_a_session_of_another_shard_answers(world: World, name: str) -> None:
    requester, responder = guest(world, 0), listening(world, name)
    asked(world, requester)
    assert answered(world, responder, responder.last())["successful"]
    assert heard(world, requester) == ["!"]
    assert outstanding(world) == 0


def test_the_remaining_time_is_told_at_another_shard(world: World) -> None:
    requester, responder = guest(world, 0), listening(world, "ann/1")
    responder.server.advance(1)
    asked(world, requester)
    assert 3_000 < responder.last()["ext"]["timeout"] <= 5_000


def test_without_receivers_the_requester_hears_it_at_once(world: World) -> None:
    requester = guest(world, 0)
    requester.ask()
    assert requester.heard() == []
    assert heard(world, requester) == [NO_RESPONDERS]


def test_who_never_answers_does_not_count(world: World) -> None:
    requester, watcher = guest(world, 0), comes(world, "ann/1")
    qos = {"delivery": {"responds": False}}
    watcher.send({"channel": "/meta/subscribe", "subscription": "/**", "ext": qos})
    watcher.server.turn()
    watcher.hear()
    asked(world, requester)
    assert heard(world, requester) == [NO_RESPONDERS]
    error = watcher.reply(watcher.last())["error"]
    assert error.endswith(":reply_denied")


def test_a_deadline_ends_a_request_to_another_shard(world: World) -> None:
    requester, responder = guest(world, 0), listening(world, "ann/1")
    asked(world, requester)
    event = responder.last()
    for shard in world.shards:
        shard.server.advance(6)
    assert heard(world, requester) == [TIMEOUT]
    assert answered(world, responder, event)["error"].endswith(":late_reply")
    assert len(world.shards[0].keeper.letters) == 1
    assert answered(world, responder, event)["error"].endswith(":duplicate_reply")


def test_the_second_of_two_replies_is_a_duplicate(world: World) -> None:
    requester = guest(world, 0)
    people = [listening(world, "ann/1"), listening(world, "bob/1"), listening(world, "carl/1")]
    asked(world, requester)
    events = [person.last() for person in people]
    replies = [
        answered(world, person, event, person.ret)
        for person, event in zip(people, events, strict=True)
    ]
    assert replies[0]["successful"]
    assert all(each["error"].endswith(":duplicate_reply") for each in replies[1:])
    assert heard(world, requester) == [people[0].ret]


def test_a_session_replies_once(world: World) -> None:
    requester, responder = guest(world, 0), listening(world, "ann/1")
    asked(world, requester, request="all")
    event = responder.last()
    assert answered(world, responder, event)["successful"]
    assert responder.reply(event)["error"].endswith(":duplicate_reply")
    assert heard(world, requester) == ["!", {"replies": 1, "missing": 0}]


def test_nobody_answers_what_it_was_not_handed(world: World) -> None:
    requester, responder = guest(world, 0), listening(world, "ann/1")
    other = comes(world, "carl/1")
    asked(world, requester)
    assert other.reply(responder.last())["error"].endswith(":reply_denied")


@pytest.mark.interpreted
@pytest.mark.parametrize("shards", [1, 2])
def test_a_denied_reply_is_about_no_request_with_any_number_of_shards(
    shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = asking(shards)
    requester, responder = guest(world, 0), listening(world, "ann/1")
    other = comes(world, "carl/1")
    asked(world, requester)
    told: list[tuple[object, ...]] = []
    for shard in world.shards:
        journal = shard.server.bayeux.state.journal
        monkeypatch.setattr(journal, "replied", lambda *event: told.append(event))
    assert other.reply(responder.last())["error"].endswith(":reply_denied")
    assert told == [("denied", "carl/1", "", 0)]


def test_all_replies_are_counted_wherever_they_come_from(world: World) -> None:
    requester = guest(world, 0)
    people = [listening(world, "ann/1"), listening(world, "bob/1"), listening(world, "carl/1")]
    asked(world, requester, request="all")
    for person in people[:2]:
        answered(world, person, person.last(), person.session.key)
    assert heard(world, requester) == ["ann/1", "bob/1"]
    people[2].send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    people[2].server.turn()
    assert heard(world, requester) == [{"replies": 2, "missing": 0}]


def test_a_responder_that_ends_is_waited_for_no_more(world: World) -> None:
    requester, responder = guest(world, 0), listening(world, "ann/1")
    asked(world, requester)
    responder.last()
    responder.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    responder.server.turn()
    assert heard(world, requester) == [NO_RESPONDERS]


def test_requests_that_a_responder_leaves_end_in_the_order_in_which_they_were_sent(
    world: World,
) -> None:
    responder = listening(world, "ann/1")
    ended: list[str] = []
    world.shards[0].server.bayeux.state.requests.changed = lambda one: ended.append(one.name)
    requesters = [guest(world, 0) for _ in range(20)]
    for each in requesters:
        asked(world, each)
    for _ in range(2):
        replies = [each for each in responder.hear() if "successful" in each]
        responder.connect(ext={"ack": replies[-1]["ext"]["ack"]})
        responder.server.turn()
    ended.clear()
    responder.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    responder.server.turn()
    world.read_all()
    # Each changes once more when its end is stored.
    assert [*dict.fromkeys(ended)] == [each.session.name for each in requesters]


def test_who_ends_after_the_deadline_does_not_change_the_outcome(world: World) -> None:
    requester, responder = guest(world, 0), listening(world, "ann/1")
    asked(world, requester)
    responder.last()
    responder.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    responder.server.turn()
    # The shard has had no time to see that the deadline has passed.
    requester.server.now += 6
    world.read_all()
    requester.server.advance(0.1)
    assert heard(world, requester) == [TIMEOUT]


@pytest.mark.parametrize("is_here", [True, False])
def test_one_receiver_is_asked(world: World, is_here: bool) -> None:
    requester = guest(world, 0)
    people = [listening(world, name) for name in ("ann/1", "carl/1")]
    if is_here:
        people.append(listening(world, "bob/1"))
    asked(world, requester, request="one")
    events = [event for person in people for event in person.heard()]
    assert len(events) == 1
    assert heard(world, requester) == []


def test_one_receiver_is_looked_for_at_all_shards() -> None:
    world = asking(3)
    requester = guest(world, 0)
    asked(world, requester, request="one")
    assert heard(world, requester) == [NO_RESPONDERS]
    responder = guest(world, 2)
    responder.subscribe(POWER)
    responder.hear()
    for serial in range(2, 5):
        asked(world, requester, request="one", serial=serial)
        answered(world, responder, responder.last(), serial)
        assert heard(world, requester) == [serial]
    assert outstanding(world) == 0


@pytest.mark.parametrize("is_subscribable", [True, False])
def test_a_session_of_another_shard_is_asked_by_its_name(
    world: World, is_subscribable: bool
) -> None:
    requester, responder = guest(world, 0), comes(world, "ann/1")
    qos = {"destinations": ["ann"], "subscribable": is_subscribable}
    waiting = requester.publish(POWER, "?", ext={"replyTo": requester.address(), "delivery": qos})
    world.read_all()
    requester.server.turn()
    assert requester._reply(waiting)["successful"]
    world.read_all()
    answered(world, responder, responder.last())
    assert heard(world, requester) == ["!"]


@pytest.mark.parametrize("is_subscribable", [True, False])
def test_a_session_that_was_asked_by_its_name_and_ends_is_waited_for_no_more(
    world: World, is_subscribable: bool
) -> None:
    requester, responder = guest(world, 0), comes(world, "ann/1")
    qos = {"destinations": ["ann/1"], "subscribable": is_subscribable}
    requester.publish(POWER, "?", ext={"replyTo": requester.address(), "delivery": qos})
    world.read_all()
    requester.heard()
    responder.last()
    responder.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    responder.server.turn()
    assert heard(world, requester) == [NO_RESPONDERS]


def test_a_destination_that_does_not_exist_is_not_asked(world: World) -> None:
    requester = guest(world, 0)
    qos = {"destinations": ["ann"], "subscribable": False}
    waiting = requester.publish(POWER, "?", ext={"replyTo": requester.address(), "delivery": qos})
    world.read_all()
    requester.server.turn()
    assert requester._reply(waiting)["error"].startswith("404:")
    assert heard(world, requester) == []
    assert outstanding(world) == 0


def test_a_request_to_a_destination_has_its_outcome_if_its_shard_is_killed_meanwhile(
    world: World,
) -> None:
    bob, ann = comes(world, "bob/1"), comes(world, "ann/1")
    qos = {"destinations": ["ann"], "subscribable": False, "key": "once"}
    bob.publish(POWER, "?", ext={"replyTo": bob.address(), "timeout": 5_000, "delivery": qos})
    bob.server.turn()
    # The other shard has it, and the one that asks has not heard so.
    world.shards[1].read(0, 1 << 30)
    world.shards[0].kill()
    bob = comes_back(world, "bob/1", bob)
    world.read_all()
    bob.publish(POWER, "?", ext={"replyTo": bob.address(), "delivery": qos})
    world.read_all()
    bob.server.turn()
    assert [each["successful"] for each in bob.hear() if each["channel"] == POWER] == [True]
    assert answered(world, ann, ann.last())["successful"]
    assert heard(world, bob) == ["!"]
    assert outstanding(world) == 0


def test_a_request_waits_for_a_subject_of_another_shard(world: World) -> None:
    requester = guest(world, 0)
    to = [{"name": "ann", "forceQueuing": True}]
    qos = {"destinations": to, "subscribable": False}
    waiting = requester.publish(POWER, "?", ext={"replyTo": requester.address(), "delivery": qos})
    world.read_all()
    requester.server.turn()
    assert requester._reply(waiting)["successful"]
    responder = comes(world, "ann/1")
    world.read_all()
    answered(world, responder, responder.last())
    assert heard(world, requester) == ["!"]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_request_goes_on_if_a_shard_is_killed(world: World, killed: int) -> None:
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    asked(world, bob)
    event = ann.last()
    world.shards[killed].kill()
    if killed:
        ann = comes_back(world, "ann/1", ann)
    else:
        bob = comes_back(world, "bob/1", bob)
    world.read_all()
    assert heard(world, bob) == []
    assert answered(world, ann, event)["successful"]
    assert heard(world, bob) == ["!"]
    assert all(not each.keeper.requests for each in world.shards[:1])
    for shard in world.shards:
        shard.server.advance(6)
    assert heard(world, bob) == []
    assert not any(each.keeper.requests for each in world.shards)


@pytest.mark.parametrize("responder", ["ann/1", "dan/1"])
def test_a_request_with_a_key_is_stored_in_one_step_with_its_message(
    world: World, responder: str
) -> None:
    bob, other = comes(world, "bob/1"), listening(world, responder)
    key = {"delivery": {"key": "once"}}
    # The store has it, and its server is killed before it hears so.
    bob.publish(POWER, "?", ext={"replyTo": bob.address(), "timeout": 5_000, **key})
    world.shards[0].kill()
    bob = comes_back(world, "bob/1", bob)
    if other.server is not world.shards[1].server:
        other = comes_back(world, responder, other)
    asked(world, bob, **key)
    assert answered(world, other, other.last())["successful"]
    assert heard(world, bob) == ["!"]
    assert outstanding(world) == 0


def test_the_one_that_was_asked_may_answer_though_its_shard_is_killed(world: World) -> None:
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    asked(world, bob, request="one")
    event = ann.last()
    ann.connect(ext={"ack": ann.session.queue.batch})
    world.shards[1].kill()
    ann = comes_back(world, "ann/1", ann)
    assert answered(world, ann, event)["successful"]
    assert heard(world, bob) == ["!"]


def test_a_responder_that_a_kill_has_ended_is_waited_for_no_more(world: World) -> None:
    requester, responder = guest(world, 0), guest(world, 1)
    responder.subscribe(POWER)
    responder.hear()
    asked(world, requester)
    responder.last()
    world.shards[1].kill()
    assert heard(world, requester) == [NO_RESPONDERS]


def test_a_reply_in_the_log_counts_though_its_shard_is_killed(world: World) -> None:
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    asked(world, bob)
    ann.publish(ann.last()["ext"]["replyTo"], "!")
    ann.server.turn()
    world.shards[1].kill()
    assert heard(world, bob) == ["!"]
    for shard in world.shards:
        shard.server.advance(6)
    assert heard(world, bob) == []


def test_a_reply_counts_once_though_its_answer_is_lost(world: World) -> None:
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    asked(world, bob)
    event = ann.last()
    waiting = ann.publish(event["ext"]["replyTo"], "!")
    world.shards[0].read(1, 100)
    world.shards[1].give_up()
    ann.server.turn()
    assert ",unknown:" in ann._reply(waiting)["error"]
    assert answered(world, ann, event)["error"].endswith(":duplicate_reply")
    assert heard(world, bob) == ["!"]


def test_a_reply_that_the_store_refuses_may_be_repeated(world: World) -> None:
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    asked(world, bob)
    event = ann.last()
    keeper = world.shards[0].keeper
    keeper.outcome = PersistOutcome.REFUSED
    assert answered(world, ann, event)["error"].startswith("503:")
    keeper.outcome = PersistOutcome.KEPT
    assert answered(world, ann, event)["successful"]
    assert heard(world, bob) == ["!"]


def test_who_may_answer_is_asked_again_until_the_shard_says_so(world: World) -> None:
    requester = guest(world, 0)
    requester.ask(timeout=20_000)
    # The call was lost on the way.
    world.shards[0].keeper.log.clear()
    world.shards[0].give_up()
    assert heard(world, requester) == []
    requester.server.advance(0.2)
    assert heard(world, requester) == [NO_RESPONDERS]


# Remote calls


def called(world: World, person: Person, id: str = "7") -> Json:
    """The reply to the message that calls."""
    waiting = person.publish(SERVICE, {"of": "motor"}, id=id)
    person.server.turn()
    world.read_all()
    person.server.turn()
    return person._reply(waiting)


@pytest.mark.parametrize("name", ["ann/1", "bob/1"])
def test_a_remote_call_is_answered_by_a_subscriber_at_any_shard(world: World, name: str) -> None:
    caller, responder = guest(world, 0), listening(world, name)
    assert called(world, caller)["successful"]
    world.read_all()
    assert answered(world, responder, responder.last(), 230)["successful"]
    world.read_all()
    [answer] = [each for each in caller.heard() if each["channel"] == SERVICE]
    assert answer == {"channel": SERVICE, "id": "7", "data": 230, "successful": True}


def test_a_remote_call_asks_only_if_any_shard_has_a_subscriber_of_its_channel() -> None:
    world = asking(3)
    caller = guest(world, 0)
    watchers = [listening(world, name, "/**") for name in ("ann/1", "bob/1")]
    assert called(world, caller) == {"channel": SERVICE, "id": "7", "successful": True}
    assert [watcher.heard() for watcher in watchers] == [[], []]
    assert outstanding(world) == 0
    responder = guest(world, 2)
    responder.subscribe(POWER)
    responder.hear()
    called(world, caller)
    world.read_all()
    # As at a single server, everyone who gets the channel is called.
    assert all(len(person.heard()) == 1 for person in (responder, *watchers))


def test_a_remote_call_that_finds_no_one_in_time_is_only_confirmed(world: World) -> None:
    caller = guest(world, 0)
    listening(world, "ann/1")
    waiting = caller.publish(SERVICE, 1)
    caller.server.turn()
    world.shards[0].give_up()
    caller.server.turn()
    assert caller._reply(waiting)["successful"]
    world.read_all()
    assert outstanding(world) == 0


def test_a_remote_call_that_is_refused_later_says_why() -> None:
    world = asking(2, max_outstanding=1)
    caller = guest(world, 0)
    listening(world, "ann/1")
    assert called(world, caller)["successful"]
    assert called(world, caller, "8")["error"] == "503:1:requests_exceeded"


@pytest.mark.parametrize("name", ["ann/1", "bob/1"])
def test_a_reply_that_is_too_large_for_its_caller_ends_no_call(name: str) -> None:
    world = asking(2, max_message_size=300)
    caller, responder = guest(world, 0), listening(world, name)
    assert called(world, caller, "7" * 40)["successful"]
    event = responder.last()
    # With the channel and the id of the call, it has more than 300 bytes.
    refused = answered(world, responder, event, "." * 200)
    assert refused["error"] == "413:300:message_too_large"
    assert answered(world, responder, event)["successful"]
    world.read_all()
    assert [each["data"] for each in caller.heard() if each["channel"] == SERVICE] == ["!"]
    assert outstanding(world) == 0


def test_a_caller_that_has_ended_calls_no_one(world: World) -> None:
    caller, responder = guest(world, 0), listening(world, "ann/1")
    caller.publish(SERVICE, 1)
    caller.server.bayeux.life.ends.end_by_server(caller.session, caller.server.now)
    world.read_all()
    assert responder.heard() == []
    assert outstanding(world) == 0


# Other processes


def test_the_next_process_knows_who_may_answer_though_the_store_does_not(world: World) -> None:
    requester, responder = guest(world, 0), guest(world, 1)
    responder.subscribe(POWER)
    responder.hear()
    asked(world, requester)
    address = responder.last()["ext"]["replyTo"]
    before = world.shards[1].server.bayeux.state.requests
    [fields] = passing_fields(before)
    assert fields_of_all(before) == {}
    after = asking(2).shards[1].server.bayeux.state
    reopen_all(after, fields, 1000.0, are_kept=False)
    known = after.requests.at(address)
    assert known is not None
    assert known.responders == {responder.session.key}
    assert [*passing_fields(after.requests)] == [fields]


def test_what_is_stored_of_old_or_unreadable_requests_of_others_is_removed(world: World) -> None:
    shard = world.shards[1]
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    asked(world, bob)
    ann.last()
    fields = dict(shard.keeper.requests)
    assert fields
    shard.keeper.save_requests({"~/ret/x/4000001": b"{", "~/ret/y/4000001 ann/1": b"null"})
    shard.kill()
    assert shard.keeper.requests == fields
    assert fields_of_all(shard.server.bayeux.state.requests) == fields
    shard.kill()
    shard.server.advance(6)
    assert shard.keeper.requests == {}


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("to", ["one", "destination"])
def test_a_request_with_a_key_has_its_outcome_though_its_shard_is_killed_before_others_read_it(
    world: World, to: str, turns: int
) -> None:
    bob, ann = comes(world, "bob/1"), listening(world, "ann/1")
    ext: Json = {"delivery": {"key": "once"}}
    if to == "one":
        ext["request"] = "one"
    else:
        ext["delivery"] |= {"destinations": ["ann"], "subscribable": False}
    bob.publish(POWER, "?", ext={"replyTo": bob.address(), "timeout": 5_000, **ext})
    for _ in range(turns):
        bob.server.turn()
    world.shards[0].kill()
    bob = comes_back(world, "bob/1", bob)
    # Only what is addressed by name is lost before it is in the log, and that is told.
    is_lost = to == "destination" and turns == 0
    assert heard(world, bob) == ([NO_RESPONDERS] if is_lost else [])
    if is_lost:
        bob.connect(ext={"ack": 2})
    bob.publish(POWER, "?", ext={"replyTo": bob.address(), "timeout": 5_000, **ext})
    world.read_all()
    assert outstanding(world) == 1
    assert answered(world, ann, ann.last())["successful"]
    assert heard(world, bob) == ["!"]
    assert outstanding(world) == 0


@pytest.mark.parametrize("killed", [[2], [0, 1, 2]])
@pytest.mark.parametrize("responder", ["carl/1", None])
def test_a_request_for_one_that_no_shard_has_seen_goes_on_at_all_shards(
    killed: list[int], responder: str | None
) -> None:
    world = asking(3)
    bob = comes(world, "bob/1")
    ones = {"request": "one", "delivery": {"key": "once"}}
    # The store has it, and its server is killed before it hears so.
    bob.publish(POWER, "?", ext={"replyTo": bob.address(), "timeout": 5_000, **ones})
    for number in killed:
        world.shards[number].kill()
    bob = comes_back(world, "bob/1", bob)
    carl = None if responder is None else listening(world, responder)
    world.read_all()
    if carl is None:
        assert heard(world, bob) == [NO_RESPONDERS]
    else:
        assert answered(world, carl, carl.last())["successful"]
        assert heard(world, bob) == ["!"]
    assert outstanding(world) == 0
    assert not world.shards[2].keeper.requests
