"""Sessions that say that they never answer see requests, and nobody waits for them."""

from typing import Any

import pytest

from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Server
from tests.unit.extensions.requesting import (
    POWER,
    Person,
    figures,
    requester,
    requesting,
    responder,
)
from tests.unit.extensions.test_reply_modes import judge, named, restarted, returned

NO_RESPONDERS = f"404:{POWER}:no_responders"


def listens(person: Person, channel: str = "/**") -> Person:
    asked = {"channel": "/meta/subscribe", "subscription": channel}
    person.send({**asked, "ext": {"delivery": {"responds": False}}})
    person.heard()
    return person


def listener(server: Server, channel: str = "/**", ext: Any = None) -> Person:
    person = listens(Person.come(server, ext), channel)
    person.connect()
    return person


def test_a_request_that_only_listeners_get_has_no_responders() -> None:
    server = requesting()
    ann, eve = requester(server), listener(server)
    ann.ask()
    assert ann.last()["error"] == NO_RESPONDERS
    assert eve.last()["data"] == "?"
    assert server.balances()


def test_a_request_does_not_wait_for_listeners_when_its_responders_have_ended() -> None:
    server = requesting()
    ann, bob, _ = requester(server), responder(server), listener(server)
    ann.ask()
    assert ann.heard() == []
    bob.disconnect()
    assert ann.last()["error"] == NO_RESPONDERS


def test_the_replies_and_verdicts_of_a_listener_do_not_count() -> None:
    server = requesting()
    ann, bob, eve = requester(server), responder(server), listener(server, ext={"delivery": True})
    ann.ask()
    seen = eve.last()
    assert eve.reply(seen)["error"].endswith(":reply_denied")
    judge(eve, seen)
    assert ann.heard() == []
    bob.reply(bob.last(), 230)
    assert ann.last()["data"] == 230


def test_a_request_to_all_misses_no_reply_of_a_listener() -> None:
    server = requesting()
    ann, bob, _ = requester(server), responder(server), listener(server)
    ann.ask(request="all")
    bob.reply(bob.last())
    assert [each["data"] for each in ann.heard()] == ["!", {"replies": 1, "missing": 0}]


def test_a_request_to_one_goes_to_one_that_may_answer() -> None:
    server = requesting()
    ann, _, bob = requester(server), listener(server), responder(server)
    for serial in (1, 2):
        ann.ask(serial=serial, request="one")
        bob.reply(bob.last())
    assert figures(server) == {"answered": 2}


def test_a_request_on_a_work_queue_waits_for_a_worker_that_may_answer() -> None:
    server = requesting(channels={POWER: ChannelSettings(work_queue=True)})
    ann, eve = requester(server), listener(server)
    ann.ask()
    ann.say(POWER, "work")
    assert eve.last()["data"] == "work"
    bob = Person.come(server)
    bob.subscribe(POWER)
    bob.reply(bob.last(), 230)
    assert [each["data"] for each in ann.heard()] == [230]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_listener_with_another_subscription_counts_as_a_responder(is_first: bool) -> None:
    server = requesting()
    ann, eve = requester(server), Person.come(server)
    if is_first:
        listens(eve)
    eve.subscribe(POWER)
    if not is_first:
        listens(eve)
    eve.hear()
    ann.ask()
    eve.reply(eve.last(), 230)
    assert ann.last()["data"] == 230


def test_a_listener_that_subscribes_again_without_the_option_counts_as_a_responder() -> None:
    server = requesting()
    ann, eve = requester(server), listener(server)
    eve.subscribe("/**")
    eve.hear()
    ann.ask()
    eve.reply(eve.last(), 230)
    assert ann.last()["data"] == 230


def test_a_listener_may_answer_a_request_that_is_addressed_to_it() -> None:
    server = requesting()
    ann = requester(server)
    eve = listener(server, ext={"delivery": {"session": "eve/1"}})
    ann.ask(delivery={"destinations": [{"name": "eve/1"}], "subscribable": False})
    eve.reply(eve.last(), 230)
    assert ann.last()["data"] == 230


def test_a_named_listener_stays_one_over_a_restart() -> None:
    server = requesting()
    ann = named(server, "ann/1", request=True)
    eve = listens(named(server, "eve/1"))
    bob = named(server, "bob/1")
    bob.subscribe(POWER)
    bob.heard()
    ann.ask(timeout=60_000)
    after = restarted(server)
    ann = returned(after, ann, "ann/1")
    eve = returned(after, eve, "eve/1", hears=False)
    (seen,) = eve.heard()
    assert eve.reply(seen)["error"].endswith(":reply_denied")
    ann.ask(serial=2, timeout=60_000, delivery={"persistent": False})
    assert after.bayeux.state.requests.grants == 2
