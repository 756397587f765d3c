"""Attacks on the session slots of a server: sessions that stay without a client."""

from contextlib import ExitStack
from typing import Any

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Wire, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target

TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000
DAY_MS = 24 * 3600 * 1000


def claim(wire: Wire, name: str, cookie: str | None = None, **session: Any) -> dict[str, Any]:
    """The reply to a handshake with a name."""
    asked = {**HANDSHAKE, "ext": {"ack": True, "delivery": {"session": {"name": name, **session}}}}
    headers = {} if cookie is None else {"Cookie": cookie}
    wire.send(request(orjson.dumps([asked]), headers))
    reply: dict[str, Any] = wire.answer().messages()[0]
    return reply


def fill(target: Target, count: int) -> None:
    """Take as many session names as one connection gets, and release none."""
    with target.wire() as wire:
        for number in range(count):
            claim(wire, f"thief{number}/1", timeout=TEN_YEARS_MS)


@pytest.mark.parametrize("is_named", [False, True])
def test_one_connection_cannot_take_all_session_slots(
    *, is_named: bool, target_with: MakeTarget
) -> None:
    target = target_with(max_sessions=40, timeout=60_000)
    with target.bystander():
        fill(target, 120)
        assert target.metric("holdfast_sessions") <= 40
        ext = {"ack": True, "delivery": {"session": "joe/1"} if is_named else True}
        with target.person(ext=ext) as person:
            person.hold()
            fill(target, 120)
            assert target.metric("holdfast_connects_held") == 1
    assert target.metric("holdfast_sessions_evicted_total") > 0


def test_a_connected_session_keeps_its_slot(
    target_with: MakeTarget,
) -> None:
    target = target_with(max_sessions=40, timeout=60_000)
    with target.person(ext={"delivery": {"session": "joe/1"}}) as person:
        person.subscribe("/a")
        person.hold()
        fill(target, 200)
        with target.person() as author:
            author.publish("/a", "still here")
        assert [each.get("data") for each in person.answer().messages()] == ["still here", None]


def test_a_session_timeout_is_limited_to_the_servers_maximum(target: Target) -> None:
    with target.wire() as wire:
        for wish in (TEN_YEARS_MS, 0):
            told = claim(wire, "joe/1", timeout=wish)["ext"]["delivery"]["session"]
            assert told["timeout"] == DAY_MS
        assert claim(wire, "joe/1", timeout=1000)["ext"]["delivery"]["session"]["timeout"] == 1000


def test_one_browser_has_a_bounded_number_of_names(target_with: MakeTarget) -> None:
    target = target_with(max_names_per_browser=5)
    with target.person() as thief, target.wire() as wire:
        cookie = thief.headers["Cookie"]
        replies = [claim(wire, f"thief/{n + 1}", cookie, maxSessions=5) for n in range(5)]
        assert all(reply["successful"] for reply in replies)
        refused = claim(wire, "thief2/1", cookie)
        assert refused["error"] == "403:user.configuration.maxSession,browser:sessions_exceeded"
        assert refused["advice"]["reconnect"] == "none"
        # It may resume its own sessions, and clients with another cookie are not affected.
        assert claim(wire, "thief/1", cookie)["successful"]
        assert claim(wire, "joe/1")["successful"]


def test_queues_of_absent_sessions_keep_no_newcomer_out(
    target_with: MakeTarget,
) -> None:
    target = target_with(max_sessions=20, max_sessions_per_subject=20, timeout=60_000)
    with target.bystander(), target.person() as author:
        author.hold()
        for number in range(15):
            ext = {"ack": True, "delivery": {"session": f"thief/{number + 1}"}}
            with target.person(ext=ext) as thief:
                thief.subscribe("/loot")
                thief.ask(thief.message("/meta/disconnect"))
        with target.person() as publisher:
            publisher.connect()
            for _ in range(5):
                loot = [publisher.message("/loot", data=number) for number in range(100)]
                assert all(reply["successful"] for reply in publisher.ask(*loot).messages())
        with ExitStack() as stack:
            newcomers = []
            for _ in range(8):
                target.until_metric("holdfast_sessions", 19, at_most=True)
                newcomers.append(stack.enter_context(target.person()))
                newcomers[-1].hold()
            target.until_metric("holdfast_connects_held", 9)
    assert target.metric("holdfast_entries_settled_total", outcome="dead") >= 500
