"""Requests under attack: only responders can reply, and floods of requests are bounded."""

from secrets import token_urlsafe
from typing import Any

import pytest

from tests.abuse.attacker import SocketPerson
from tests.abuse.conftest import PATIENT, MakeTarget
from tests.abuse.target import Target

POWER = "/data/power"
OUTSTANDING = "holdfast_requests_outstanding"
REFUSED = "holdfast_replies_refused_total"
ENDED = "holdfast_requests_ended_total"
# Messages of one frame.
FRAME = 500


@pytest.fixture
def target(target_with: MakeTarget) -> Target:
    """A server whose sessions outlive an attack that takes long."""
    return target_with(**PATIENT)


class Asker(SocketPerson):
    """A client that may ask; events and replies are told apart."""

    def __init__(self, target: Target, *channels: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.ret = ""
        super().__init__(target.url, ext={"request": True})
        self.settle_in(*channels)

    def hear(self) -> list[dict[str, Any]]:
        heard = super().hear()
        self.ret = self.ret or heard[0]["ext"]["ret"]
        return heard

    def request(self, serial: int, ret: str = "", **ext: Any) -> dict[str, Any]:
        reply_to = f"{ret or self.ret}/{4_000_000 + serial}"
        return self.message(POWER, data=serial, ext={"replyTo": reply_to, **ext})

    def errors(self, *messages: dict[str, Any]) -> list[str]:
        """The errors in the replies to these publishes, empty where there is none."""
        errors = []
        for at in range(0, len(messages), FRAME):
            part = messages[at : at + FRAME]
            self.say(*part)
            replies = 0
            while replies < len(part):
                for each in self.hear():
                    if "data" in each:
                        self.events.append(each)
                    else:
                        errors.append(each.get("error", "").rpartition(":")[2])
                        replies += 1
        return errors

    def event(self) -> dict[str, Any]:
        while not self.events:
            self.events += [each for each in self.hear() if "data" in each]
        return self.events.pop(0)


def test_a_client_that_knows_a_reply_channel_cannot_forge_a_reply(target: Target) -> None:
    before = target.metric(REFUSED, reason="denied")
    with Asker(target) as ann, Asker(target, POWER) as bob, Asker(target) as eve:
        assert ann.errors(ann.request(1)) == [""]
        reply_to = bob.event()["ext"]["replyTo"]
        forged = eve.message(reply_to, data="forged")
        deeper = [eve.message(f"{reply_to}/{each}", data="forged") for each in ("1", "x")]
        assert eve.errors(forged, *deeper) == ["reply_denied"] * 3
        # Not even by the requester.
        assert ann.errors(ann.message(reply_to, data="own")) == ["reply_denied"]
        assert bob.errors(bob.message(reply_to, data="true")) == [""]
        assert ann.event()["data"] == "true"
        assert target.metric(REFUSED, reason="denied") - before == 4


def test_a_client_cannot_subscribe_to_the_replies_of_others(target: Target) -> None:
    with Asker(target) as ann, Asker(target, POWER) as bob, Asker(target, "/**") as eve:
        for pattern in (f"{ann.ret}/*", f"{ann.ret}/4000001", "/ret/**", "/ret/*"):
            subscribe = eve.message("/meta/subscribe", subscription=pattern)
            assert eve.errors(subscribe) == ["subscribe_denied"]
        ann.errors(ann.request(1))
        bob.errors(bob.message(bob.event()["ext"]["replyTo"], data="secret"))
        assert ann.event()["data"] == "secret"
        eve.errors(eve.message("/the/end", data="end"))
        heard = [eve.event()["channel"] for _ in range(2)]
        assert heard == [POWER, "/the/end"]


def test_a_request_cannot_send_replies_to_the_channel_of_others(target: Target) -> None:
    with Asker(target) as ann, Asker(target, POWER), Asker(target) as eve:
        strange = [ann.ret, ann.ret + "x", "/ret", "/ret/", POWER, eve.ret + "/..", eve.ret[:-1]]
        assert set(eve.errors(*(eve.request(1, ret) for ret in strange))) == {"reply_denied"}
        assert target.metric(OUTSTANDING) == 0


def test_reply_channels_cannot_be_guessed_and_guesses_are_not_kept(target: Target) -> None:
    before = target.metric(REFUSED, reason="denied")
    with Asker(target) as ann, Asker(target, POWER) as bob, Asker(target) as eve:
        ann.errors(ann.request(1, timeout=120_000))
        guesses = [f"/ret/{token_urlsafe(16)}/4000001" for _ in range(10_000)]
        guesses += [f"{ann.ret}/{4_000_000 + serial}" for serial in range(10_000)]
        with target.bystander():
            errors = eve.errors(*(eve.message(guess, data="?") for guess in guesses))
        assert set(errors) == {"reply_denied"}
        assert target.metric(REFUSED, reason="denied") - before == len(guesses)
        assert target.growth_mib() < 30
        bob.errors(bob.message(bob.event()["ext"]["replyTo"], data="true"))
        assert ann.event()["data"] == "true"


def test_only_one_of_a_flood_of_replies_arrives(target: Target) -> None:
    before = target.metric("holdfast_replies_total")
    with Asker(target) as ann, Asker(target, POWER) as bob:
        ann.errors(ann.request(1))
        reply_to = bob.event()["ext"]["replyTo"]
        with target.bystander():
            errors = bob.errors(*(bob.message(reply_to, data=number) for number in range(10_000)))
        assert errors == [""] + ["duplicate_reply"] * 9_999
        assert ann.event()["data"] == 0
        ann.errors(ann.message("/the/end", data="end"))
        assert ann.events == []
        assert target.metric("holdfast_replies_total") - before == 1


def test_late_replies_are_dead_letters_once_each(target: Target) -> None:
    before = target.metric("holdfast_entries_settled_total", outcome="dead")
    with Asker(target) as ann, Asker(target, POWER) as bob:
        ann.errors(ann.request(1, timeout=1000))
        assert ann.event()["error"] == f"408:{POWER}:timeout"
        reply_to = bob.event()["ext"]["replyTo"]
        errors = bob.errors(*(bob.message(reply_to, data=number) for number in range(1_000)))
        assert errors == ["late_reply"] + ["duplicate_reply"] * 999
        assert target.metric("holdfast_entries_settled_total", outcome="dead") - before == 1


def test_the_requests_of_a_session_are_limited_and_others_can_still_ask(
    target_with: MakeTarget,
) -> None:
    target = target_with(max_outstanding=100, **PATIENT)
    with Asker(target) as ann, Asker(target, POWER), Asker(target) as eve:
        with target.bystander():
            errors = eve.errors(*(eve.request(serial) for serial in range(5_000)))
        assert errors == [""] * 100 + ["requests_exceeded"] * 4_900
        assert target.metric(OUTSTANDING) == 100
        assert ann.errors(ann.request(1)) == [""]
        eve.say(eve.message("/meta/disconnect"))
        target.until_metric(OUTSTANDING, 1)


def test_the_outstanding_requests_of_all_sessions_are_limited(target_with: MakeTarget) -> None:
    target = target_with(max_outstanding=1_000, max_total_outstanding=1_000, **PATIENT)
    with Asker(target) as ann, Asker(target, POWER) as bob, Asker(target) as eve:
        with target.bystander():
            errors = eve.errors(*(eve.request(serial) for serial in range(5_000)))
        # Each counts twice: once for its responder.
        assert errors == [""] * 500 + ["requests_used_up"] * 4_500
        assert ann.errors(ann.request(1)) == ["requests_used_up"]
        bob.say(bob.message("/meta/disconnect"))
        target.until_metric(OUTSTANDING, 0)
        ends = {eve.event()["error"] for _ in range(500)}
        assert ends == {f"404:{POWER}:no_responders"}
        assert ann.errors(ann.request(2)) == [""]
        assert ann.event()["error"] == f"404:{POWER}:no_responders"


def test_ten_thousand_outstanding_requests_get_their_own_replies(target_with: MakeTarget) -> None:
    target = target_with(max_outstanding=10_000, max_total_outstanding=20_000, **PATIENT)
    ends = {end: target.metric(ENDED, outcome=end) for end in ("answered", "timeout")}
    with Asker(target) as ann, Asker(target, POWER) as bob:
        with target.bystander():
            asked = [ann.request(serial, timeout=120_000) for serial in range(10_000)]
            assert set(ann.errors(*asked)) == {""}
            requests = [bob.event() for _ in asked]
            assert target.metric(OUTSTANDING) == 10_000
            # The last one first.
            replies = [
                bob.message(each["ext"]["replyTo"], data=each["data"]) for each in requests[::-1]
            ]
            assert set(bob.errors(*replies)) == {""}
            heard = [ann.event() for _ in asked]
        assert {each["channel"]: each["data"] for each in heard} == {
            f"{ann.ret}/{4_000_000 + serial}": serial for serial in range(10_000)
        }
        assert target.metric(OUTSTANDING) == 0
        assert target.metric(ENDED, outcome="answered") - ends["answered"] == 10_000
        assert target.metric(ENDED, outcome="timeout") == ends["timeout"]
