"""Who is asked, and what becomes of a request if somebody refuses, leaves or returns."""

from functools import partial
from typing import Any

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.bayeux.state.kept_requests import rejoin, reopen_all
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Json, Server, Socket
from tests.unit.extensions.requesting import (
    POWER,
    Person,
    figures,
    requester,
    requesting,
    responder,
)

VERDICTS: Json = {"delivery": True}
REFUSED = f"500:{POWER},user.update.error:responder_error"


def judge(person: Person, event: Json, code: str = "user.update.error", text: str = "no") -> None:
    verdict = {"seq": event["ext"]["delivery"]["seq"], "errorCode": code, "message": text}
    person.connect(ext={"delivery": {"verdicts": [verdict]}}, advice={"timeout": 0})
    person.server.turn()


def judging(server: Server, channel: str = POWER, **delivery: Any) -> Person:
    person = Person.come(server, {"delivery": delivery or True})
    person.subscribe(channel)
    person.connect()
    return person


def named(server: Server, name: str, **ext: Any) -> Person:
    ext = {"delivery": {"session": name}, "ack": True, **ext}
    person = Person.come(server, ext)
    person.connect(ext={"ack": 0})
    return person


# Modes


def test_a_requester_of_all_gets_every_reply_and_then_the_end() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), responder(server), responder(server)
    ann.ask(request="all")
    bob.reply(bob.last(), "bob")
    cleo.reply(cleo.last(), "cleo")
    *replies, end = ann.heard()
    assert [each["data"] for each in replies] == ["bob", "cleo"]
    assert (end["data"], end["ext"]) == ({"replies": 2, "missing": 0}, {"status": "END"})
    assert figures(server) == {"answered": 1}


def test_a_requester_of_all_learns_at_the_deadline_how_many_replies_are_missing() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), responder(server), responder(server)
    ann.ask(request="all", timeout=500)
    bob.reply(bob.last(), "bob")
    server.advance(1)
    assert [each["data"] for each in ann.heard()] == ["bob", {"replies": 1, "missing": 1}]
    assert cleo.reply(cleo.last())["error"].endswith(":late_reply")


def test_a_responder_can_call_its_reply_an_error_but_cannot_end_the_replies_of_others() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), responder(server), responder(server)
    ann.ask(request="all")
    bob.reply(bob.last(), "bob", status="END", ret="/ret/x", mime="text/csv")
    cleo.reply(cleo.last(), "cleo", status="ERROR")
    replies = [(each["data"], each["ext"]) for each in ann.heard()]
    assert replies == [
        ("bob", {"mime": "text/csv"}),
        ("cleo", {"status": "ERROR"}),
        ({"replies": 2, "missing": 0}, {"status": "END"}),
    ]


def test_a_request_cannot_look_like_an_event_of_the_server() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask(status="ERROR", ret="/ret/x")
    assert {"status", "ret"}.isdisjoint(bob.last()["ext"])


def test_a_request_to_all_without_responders_ends_with_an_error() -> None:
    server = requesting()
    ann = requester(server)
    ann.ask(request="all")
    assert ann.last()["error"] == f"404:{POWER}:no_responders"


def test_a_request_to_one_goes_to_each_responder_in_turn() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), responder(server), responder(server)
    for serial in (1, 2, 3, 4):
        ann.ask(serial, serial=serial, request="one")
        ann.heard()
    assert [each["data"] for each in bob.heard()] == [1, 3]
    assert [each["data"] for each in cleo.heard()] == [2, 4]
    ann.ask(channel="/nobody", serial=5, request="one")
    assert ann.last()["error"] == "404:/nobody:no_responders"


def test_a_request_to_one_goes_only_to_a_responder_whose_filter_selects_it() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server, "/other")
    bob.send(
        {
            "channel": "/meta/subscribe",
            "subscription": POWER,
            "ext": {"delivery": {"filter": "data.volt > 100"}},
        }
    )
    bob.hear()
    ann.ask({"volt": 12}, request="one")
    assert ann.last()["error"] == f"404:{POWER}:no_responders"
    ann.ask({"volt": 230}, serial=2, request="one")
    assert bob.last()["data"] == {"volt": 230}


def test_a_request_to_a_work_queue_waits_for_a_worker_and_goes_to_another_if_refused() -> None:
    server = requesting(channels={POWER: ChannelSettings(work_queue=True)})
    ann = requester(server)
    ann.ask()
    assert ann.heard() == []
    bob = judging(server)
    (request,) = bob.heard()
    cleo = responder(server)
    judge(bob, request)
    assert ann.heard() == []
    cleo.reply(cleo.last(), "cleo")
    assert ann.last()["data"] == "cleo"


def test_the_requester_learns_a_responders_own_code() -> None:
    server = requesting()
    ann, bob = requester(server), judging(server)
    ann.ask()
    judge(bob, bob.last(), "user.paper.empty", "tray 2")
    answer = ann.last()
    assert answer["error"] == f"500:{POWER},user.paper.empty:responder_error"
    assert (answer["data"]["code"], answer["data"]["message"]) == ("user.paper.empty", "tray 2")


def test_a_request_that_all_workers_refuse_is_refused() -> None:
    server = requesting(channels={POWER: ChannelSettings(work_queue=True)})
    ann, bob = requester(server), judging(server)
    ann.ask()
    judge(bob, bob.last())
    assert ann.last()["error"] == REFUSED


def test_a_request_may_be_addressed_to_a_session() -> None:
    server = requesting()
    ann = requester(server)
    bob = Person.come(server, {"delivery": {"session": "bob/1"}})
    bob.connect()
    ann.ask(delivery={"destinations": [{"name": "bob/1"}]})
    (request,) = bob.heard()
    assert bob.reply(request, "here")["successful"]
    assert ann.last()["data"] == "here"


# Refusals


def test_a_refusal_is_the_error_that_the_requester_gets() -> None:
    server = requesting()
    ann, bob = requester(server), judging(server)
    ann.ask()
    request = bob.last()
    judge(bob, request, text="disk full")
    answer = ann.last()
    assert answer["error"] == REFUSED
    assert answer["data"] == {
        "error": REFUSED,
        "code": "user.update.error",
        "message": "disk full",
    }
    assert figures(server) == {"refused": 1}
    assert bob.reply(request)["error"].endswith(":duplicate_reply")


def test_one_refusal_leaves_the_request_to_the_other_responders() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), judging(server), responder(server)
    ann.ask()
    judge(bob, bob.last())
    assert ann.heard() == []
    cleo.reply(cleo.last())
    assert ann.last()["data"] == "!"


def test_a_request_does_not_wait_for_a_responder_whose_queue_is_full() -> None:
    server = requesting()
    ann, bob = requester(server), judging(server, queue={"maxEntries": 1})
    ann.ask(1)
    ann.ask(2, serial=2)
    code = "resource.overflow.queue.entries"
    assert ann.last()["error"] == f"500:{POWER},{code}:responder_error"
    assert bob.last()["data"] == 1


def test_a_request_does_not_wait_for_a_plain_responder_whose_queue_is_full() -> None:
    server = requesting()
    ann, slow = requester(server), server.client()
    slow.subscribe(POWER)
    slow.session.queue.limit(1, None)
    ann.ask(1)
    ann.ask(2, serial=2)
    code = "resource.overflow.queue.entries"
    assert ann.last()["error"] == f"500:{POWER},{code}:responder_error"


# Deadlines


def test_an_event_has_the_time_left_at_its_hand_over() -> None:
    server = requesting()
    ann, slow = requester(server), server.client()
    slow.subscribe(POWER)
    ann.ask(timeout=5000)
    size = slow.session.queue.size
    server.advance(2)
    assert slow.session.queue.size == size
    (event,) = slow.connect(advice={"timeout": 0}).events
    assert event["ext"]["timeout"] == 3000


def test_data_that_look_like_the_deadline_stay_as_they_are() -> None:
    server = requesting()
    ann, slow = requester(server), server.client()
    slow.subscribe(POWER)
    data = {"replyTo": ann.address(), "timeout": 5000}
    ann.ask(data, timeout=5000)
    # Whichever comes first in the message.
    ext = {"replyTo": ann.address(2), "timeout": 5000}
    ann.send({"ext": ext, "channel": POWER, "data": {**ext, "ext": ext}})
    server.advance(2)
    one, other = slow.connect(advice={"timeout": 0}).events
    assert (one["data"], one["ext"]["timeout"]) == (data, 3000)
    assert (other["data"], other["ext"]["timeout"]) == ({**ext, "ext": ext}, 3000)


def test_the_timeout_of_a_request_may_have_a_decimal_point() -> None:
    server = requesting()
    ann, slow = requester(server), server.client()
    slow.subscribe(POWER)
    ann.ask(timeout=5000.0)
    server.advance(2)
    (event,) = slow.connect(advice={"timeout": 0}).events
    assert repr(event["ext"]["timeout"]) == "3000"


def test_a_redelivered_event_has_the_time_left_at_its_redelivery() -> None:
    server = requesting()
    ann, bob = requester(server), server.client(ext={"ack": True})
    bob.subscribe(POWER)
    ann.ask(timeout=5000)
    (first,) = bob.connect(ext={"ack": 0}, advice={"timeout": 0}).events
    server.advance(1)
    (second,) = bob.connect(ext={"ack": 0}, advice={"timeout": 0}).events
    assert (first["ext"]["timeout"], second["ext"]["timeout"]) == (5000, 4000)


def test_a_request_is_not_handed_over_after_its_deadline() -> None:
    server = requesting()
    ann, slow = requester(server), server.client()
    slow.subscribe(POWER)
    ann.ask(timeout=500)
    server.advance(1)
    assert slow.connect(advice={"timeout": 0}).events == []
    assert server.balances()


def test_a_socket_that_was_full_gets_only_open_requests_and_with_the_time_left() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    assert bob.socket is not None
    bob.socket.is_full = True
    ann.ask("soon over", timeout=500)
    ann.ask("open", serial=2, timeout=5000)
    # No tick has looked at it yet.
    server.now += 1
    bob.socket.is_full = False
    server.bayeux.state.hub.make_ready(bob.session)
    (request,) = bob.heard()
    assert (request["data"], request["ext"]["timeout"]) == ("open", 4000)
    assert server.balances()


def test_a_socket_that_was_full_gets_nothing_if_its_request_is_over() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    assert bob.socket is not None
    bob.socket.is_full = True
    ann.ask(timeout=500)
    server.now += 1
    bob.socket.is_full = False
    server.bayeux.state.hub.make_ready(bob.session)
    server.turn()
    assert bob.socket.frames == []
    assert server.balances()


# Sessions that return


def test_a_reply_waits_for_a_requester_that_reconnects() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), responder(server)
    ann.ask()
    assert ann.socket is not None
    server.close(ann.socket)
    bob.reply(bob.last(), "later")
    again = back(server, ann)
    again.connect(ext={"ack": 0})
    assert [each["data"] for each in again.heard()] == ["later"]


def back(server: Server, ann: Person) -> Person:
    """Her client resumes the session, and keeps its reply channel."""
    again = Person(server, socket=Socket(), browser=ann.browser)
    reply = again.shake({"delivery": {"session": "ann/1"}, "ack": True, "request": ann.ret})
    assert reply["ext"]["ret"] == ann.ret
    return again


def test_another_client_of_the_session_gets_a_reply_channel_of_its_own() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), responder(server)
    ann.ask()
    again = named(server, "ann/1", request=True)
    assert again.ret not in ("", ann.ret)
    bob.reply(bob.last(), "old")
    assert {each["channel"] for each in again.heard()} == {ann.address()}


def test_a_named_session_keeps_its_reply_channel_and_a_reply_over_a_restart() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), responder(server)
    ann.ask()
    assert ann.socket is not None
    server.close(ann.socket)
    bob.reply(bob.last(), "kept")
    after = restarted(server)
    again = back(after, ann)
    again.connect(ext={"ack": 0})
    assert [each["data"] for each in again.heard()] == ["kept"]
    bob = responder(after)
    again.ask(serial=9)
    assert bob.last()["ext"]["replyTo"].startswith(again.address(9) + "/")


def restarted(server: Server, away_s: float = 0, **options: Any) -> Server:
    """Another server, with what the store has, some time later."""
    server.turn()
    after = requesting(keeper=server.keeper, after=server, **options)
    after.sleep(away_s)
    without_session = partial(restore_without_session, after.bayeux.life)
    for record, entries in server.keeper.load(without_session):
        restore(after.bayeux.life, record, entries, after.now)
    state = after.bayeux.state
    reopen_all(state, dict(server.keeper.requests), after.now)
    rejoin(state.requests, [*state.sessions, *state.waiting_places.queues()])
    after.turn()
    return after


def returned(server: Server, before: Person, name: str, *, hears: bool = True) -> Person:
    person = Person(server, socket=Socket(), browser=before.browser)
    ext = {"delivery": {"session": name}, "ack": True, "request": before.ret or None}
    person.shake(ext)
    person.connect(ext={"ack": 0})
    if hears:
        person.heard()
    return person


def test_a_request_continues_after_a_restart() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named(server, "bob/1")
    bob.subscribe(POWER)
    bob.heard()
    ann.ask(timeout=60_000)
    request = bob.last()
    bob.connect(ext={"ack": 1})
    after = restarted(server)
    ann, bob = returned(after, ann, "ann/1"), returned(after, bob, "bob/1")
    eve = Person.come(after)
    assert eve.reply(request)["error"].endswith(":reply_denied")
    assert bob.reply(request, "at last")["successful"]
    answer = ann.last()
    assert (answer["channel"], answer["data"]) == (ann.address(), "at last")
    assert bob.reply(request)["error"].endswith(":duplicate_reply")
    assert restarted(after).bayeux.state.requests.outstanding == 0


def test_a_request_keeps_its_deadline_and_its_replies_over_a_restart() -> None:
    server = requesting()
    ann = named(server, "ann/1", request=True)
    bob, zoe = named(server, "bob/1"), named(server, "zoe/1")
    for each in (bob, zoe):
        each.subscribe(POWER)
        each.heard()
    ann.ask(timeout=5_000, request="all")
    bob.reply(bob.last(), "one")
    after = restarted(server, away_s=3)
    assert after.bayeux.state.requests.outstanding == 1
    again = returned(after, ann, "ann/1")
    again.connect(ext={"ack": again.session.queue.batch})
    after.advance(1)
    assert again.heard() == []
    after.advance(2)
    last = again.last()
    assert (last["channel"], last["data"]) == (ann.address(), {"replies": 1, "missing": 1})


def test_the_requests_of_a_session_that_ended_do_not_continue_after_a_restart() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named(server, "bob/1")
    bob.subscribe(POWER)
    bob.heard()
    ann.ask(timeout=60_000)
    request = bob.last()
    ann.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert figures(server) == {"abandoned": 1}
    after = restarted(server)
    assert after.bayeux.state.requests.outstanding == 0
    assert returned(after, bob, "bob/1").reply(request)["error"].endswith(":reply_denied")


def test_a_remote_call_continues_after_a_restart() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named(server, "bob/1")
    bob.subscribe(POWER)
    bob.heard()
    ann.send({"channel": "/service/data/power", "data": 1, "id": "7"})
    request = bob.last()
    after = restarted(server)
    ann, bob = returned(after, ann, "ann/1"), returned(after, bob, "bob/1")
    bob.reply(request, 230)
    (answer,) = ann.heard()
    assert (answer["channel"], answer["id"], answer["data"]) == ("/service/data/power", "7", 230)


def named_responder(server: Server, name: str) -> Person:
    person = named(server, name)
    person.subscribe(POWER)
    person.heard()
    return person


def test_a_refusal_after_a_restart_is_the_error_that_the_requester_gets() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    ann.ask(timeout=60_000)
    bob.last()
    after = restarted(server)
    ann, bob = (
        returned(after, ann, "ann/1", hears=False),
        returned(after, bob, "bob/1", hears=False),
    )
    judge(bob, bob.last(), text="disk full")
    answer = ann.last()
    assert (answer["channel"], answer["error"]) == (ann.address(), REFUSED)
    assert answer["data"]["message"] == "disk full"
    assert figures(after) == {"refused": 1}


def test_a_refusal_before_a_restart_is_remembered() -> None:
    server = requesting()
    ann = named(server, "ann/1", request=True)
    bob, cleo = named_responder(server, "bob/1"), responder(server)
    ann.ask(timeout=60_000)
    judge(bob, bob.last(), text="disk full")
    cleo.last()
    after = restarted(server)
    ann = returned(after, ann, "ann/1", hears=False)
    answer = ann.last()
    assert (answer["error"], answer["data"]["message"]) == (REFUSED, "disk full")


def test_a_request_does_not_wait_for_a_responder_that_is_gone_after_a_restart() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), responder(server)
    ann.ask(timeout=60_000)
    bob.last()
    after = restarted(server)
    ann = returned(after, ann, "ann/1", hears=False)
    assert ann.last()["error"] == f"404:{POWER}:no_responders"
    requests = after.bayeux.state.requests
    assert (requests.outstanding, requests.restored, requests.asked) == (0, 1, 0)


def test_an_event_that_waits_over_a_restart_has_the_time_left_at_its_hand_over() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), named_responder(server, "bob/1")
    assert bob.socket is not None
    server.close(bob.socket)
    ann.ask(timeout=60_000)
    after = restarted(server, away_s=20)
    bob = returned(after, bob, "bob/1", hears=False)
    request = bob.last()
    assert request["ext"]["timeout"] == 40_000
    ann = returned(after, ann, "ann/1")
    bob.reply(request, "here")
    assert ann.last()["data"] == "here"


def test_a_request_on_a_work_queue_goes_to_a_worker_that_comes_after_a_restart() -> None:
    channels = {POWER: ChannelSettings(work_queue=True)}
    server = requesting(channels=channels)
    ann = named(server, "ann/1", request=True)
    ann.ask(timeout=60_000)
    after = restarted(server, channels=channels)
    ann, bob = returned(after, ann, "ann/1"), responder(after)
    assert bob.reply(bob.last(), "at last")["successful"]
    assert ann.last()["data"] == "at last"


# The store


def test_a_reply_that_the_store_refuses_may_be_sent_again() -> None:
    server = requesting()
    ann, bob = named(server, "ann/1", request=True), responder(server)
    ann.ask(timeout=500)
    request = bob.last()
    server.keeper.outcome = PersistOutcome.REFUSED
    assert bob.reply(request)["error"].startswith("503:")
    server.keeper.outcome = PersistOutcome.KEPT
    assert bob.reply(request, "again")["successful"]
    assert [each["data"] for each in ann.heard()] == ["again"]


def test_a_reply_on_its_way_to_the_store_keeps_its_request_from_ending() -> None:
    server = requesting()
    ann, bob, cleo = named(server, "ann/1", request=True), responder(server), responder(server)
    ann.ask(timeout=500)
    request = bob.last()
    server.keeper.is_silent = True
    bob.publish(request["ext"]["replyTo"], "in time")
    assert cleo.reply(cleo.last())["error"].endswith(":duplicate_reply")
    server.now += 1
    server.bayeux.tick(server.now)
    assert server.bayeux.state.requests.outstanding == 1


def test_a_request_that_the_store_refuses_is_counted_as_unsent() -> None:
    server = requesting()
    ann, bob = requester(server), judging(server, session="bob/1")
    server.keeper.outcome = PersistOutcome.REFUSED
    assert ann.ask()["error"].startswith("503:")
    assert (ann.heard(), bob.heard()) == ([], [])
    assert figures(server) == {"unsent": 1}
    server.keeper.is_available = False
    assert ann.ask(serial=2)["error"].startswith("503:")
    assert figures(server) == {"unsent": 2}


def test_a_request_that_is_too_large_is_counted_as_unsent() -> None:
    server = requesting(max_message_size=300)
    ann = requester(server)
    assert ann.ask("x" * 400)["error"].startswith("413:")
    assert figures(server) == {"unsent": 1}


def test_an_administrative_publish_cannot_be_a_request() -> None:
    ann = requester(requesting())
    error = "400:user.publish,administrative:delivery_invalid"
    assert ann.ask(delivery={"administrative": True})["error"] == error


# Remote calls of cometd.js


def test_a_remote_call_is_answered_by_the_subscribers_of_its_target() -> None:
    server = requesting()
    ann, bob = Person.come(server), responder(server)
    ann.send({"channel": "/service/data/power", "data": {"of": "motor"}, "id": "42"})
    request = bob.last()
    assert (request["channel"], request["data"]) == (POWER, {"of": "motor"})
    bob.reply(request, 230)
    answer = [each for each in ann.heard() if each["channel"] == "/service/data/power"]
    expected = {"channel": "/service/data/power", "id": "42", "data": 230, "successful": True}
    assert answer == [expected]


def test_a_remote_call_fails_with_an_error_of_the_responder_or_at_its_deadline() -> None:
    server = requesting(reply_timeout=500)
    ann, bob = Person.come(server), responder(server)
    ann.send({"channel": "/service/data/power", "data": 1, "id": "1"})
    bob.reply(bob.last(), "broken", status="ERROR")
    (failed,) = ann.heard()
    assert (failed["id"], failed["successful"], failed["data"]) == ("1", False, "broken")
    ann.send({"channel": "/service/data/power", "data": 1, "id": "2"})
    server.advance(1)
    (over,) = ann.heard()
    assert (over["id"], over["successful"]) == ("2", False)
    assert over["data"] == {"error": f"408:{POWER}:timeout"}


def test_a_message_on_a_service_channel_that_nobody_serves_is_no_request() -> None:
    server = requesting()
    ann = Person.come(server)
    for channel in ("/service/sys/secret", "/service/ret/x", "/service/nobody"):
        assert ann.publish(channel, 1).replies[0]["successful"]
    assert figures(server) == {}


def test_a_remote_call_is_not_delivered_to_a_subscriber_of_everything() -> None:
    server = requesting()
    ann, listener = Person.come(server), Person.come(server)
    listener.subscribe("/**")
    ann.publish("/service/data/power", 1, id="4")
    assert not listener.heard()


def test_a_remote_call_with_a_very_long_id_is_refused() -> None:
    server = requesting()
    ann, bob = Person.come(server), responder(server)
    call = ann.publish("/service/data/power", 1, id="4" * 256)
    assert call.replies[0]["error"] == "405::message_id_invalid"
    assert ann.publish("/service/data/power", 2, id="4" * 255).replies[0]["successful"]
    assert [each["data"] for each in bob.heard()] == [2]


# Memory


def test_the_oldest_ended_requests_are_forgotten_first() -> None:
    server = requesting(max_outstanding=10)
    ann, bob = requester(server), responder(server)
    ann.ask(timeout=1)
    first = bob.last()
    server.advance(0.3)
    ann.heard()
    server.bayeux.state.requests.remembered.most = 5
    ann.ask(serial=2, timeout=1)
    second = bob.last()
    server.advance(0.3)
    assert bob.reply(first)["error"].endswith(":reply_denied")
    assert bob.reply(second)["error"].endswith(":late_reply")


# Rights


class Granted:
    """What a login may do."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        return channel.startswith("/service/") or operation in self.operations


def test_a_request_needs_a_right_of_its_own() -> None:
    server = requesting()
    server.bayeux.state.rights.require_login()
    ann, bob = requester(server), responder(server)
    ann.session.identity.login = Login("ann", LoginMethod.PASSWORD)
    ann.session.identity.grants = Granted(Operation.PUBLISH)
    assert ann.ask()["error"] == "403:denied_by_rights:request_denied"
    call = ann.publish("/service/data/power", 1)
    assert call.replies[0]["error"] == "403:denied_by_rights:request_denied"
    ann.session.identity.grants = Granted(Operation.PUBLISH, Operation.REQUEST)
    assert ann.ask()["successful"]
    assert bob.reply(bob.last())["successful"]
    ann.session.identity.grants = Granted()
    call = ann.publish("/service/data/power", 1)
    assert call.replies[0]["error"] == "403:denied_by_rights:publish_denied"


def test_a_remote_call_beyond_the_limit_is_refused() -> None:
    server = requesting(max_outstanding=1)
    ann, bob = Person.come(server), responder(server)
    assert ann.publish("/service/data/power", 1).replies[0]["successful"]
    [reply] = ann.publish("/service/data/power", 2).replies
    assert reply["error"] == "503:1:requests_exceeded"
    assert [each["data"] for each in bob.heard()] == [1]
