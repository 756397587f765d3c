"""One address that does too much of anything is refused, and nobody else is."""

import time
from collections import Counter
from contextlib import ExitStack
from itertools import count
from typing import Any

import orjson
import pytest

from holdfast.delivery.basics.notices import WINDOW_S
from tests.abuse.attacker import BUSY, HANDSHAKE, Answer, SocketWire, request
from tests.abuse.conftest import PATIENT, MakeTarget
from tests.abuse.target import Target

# A bucket holds ten times as much of each.
RATES = {
    "budget_requests": 2,
    "budget_handshakes": 1,
    "budget_publishes": 1,
    "budget_bytes": 1000,
}
FLOOD = 60
HELLO = orjson.dumps([HANDSHAKE])
# A message that costs no more than a request.
NOTHING = orjson.dumps([{"channel": "/meta/connect", "clientId": "none"}])
OVER = "429:{}:budget_exceeded"


@pytest.fixture(params=[True, False], ids=["fast lane", "ordinary front end"])
def target(target_with: MakeTarget, request: pytest.FixtureRequest) -> Target:
    """A server behind a proxy, which is this machine."""
    return target_with(trusted_proxies=["127.0.0.1"], fast_lane=request.param, **PATIENT, **RATES)


_numbers = count(1)


@pytest.fixture
def attacker() -> str:
    """An address whose budget is untouched."""
    return f"203.0.113.{next(_numbers)}"


@pytest.fixture
def neighbour() -> str:
    return f"198.51.100.{next(_numbers)}"


def via_proxy(address: str) -> dict[str, str]:
    return {"X-Forwarded-For": address}


def flood(target: Target, *addresses: str, body: bytes = NOTHING, times: int = 1) -> list[Answer]:
    """The answers to requests that come from these addresses, over one connection."""
    with target.wire() as wire:
        answers = []
        for address in addresses * times:
            wire.send(request(body, via_proxy(address)))
            answers.append(wire.answer())
        return answers


def statuses(answers: list[Answer]) -> Counter[int]:
    return Counter(answer.status for answer in answers)


def passing(kind: str, began_at: float) -> range:
    """The possible numbers of requests that pass a bucket that was full at the beginning."""
    rate = RATES[f"budget_{kind}"]
    return range(10 * rate, int((10 + time.monotonic() - began_at) * rate) + 2)


def test_requests_beyond_the_budget_of_an_address_get_429_and_others_do_not(
    target: Target, attacker: str, neighbour: str
) -> None:
    began_at = time.monotonic()
    before = target.metric("holdfast_budgets_exceeded_total", kind="requests")
    answers = flood(target, attacker, times=FLOOD)
    said = statuses(answers)
    assert said.keys() == {200, 429}
    assert said[200] in passing("requests", began_at)
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.messages() == [{"successful": False, "error": "429::budget_exceeded"}]
    assert refused.headers["retry-after"] == "1"
    assert statuses(flood(target, neighbour, times=20)) == {200: 20}
    refusals = target.metric("holdfast_budgets_exceeded_total", kind="requests") - before
    assert refusals == said[429]
    # In each window the first one and the number of the others.
    windows = 2 + int((time.monotonic() - began_at) // WINDOW_S)
    lines = target.log().count(f"{attacker} is over its budget of requests")
    assert 1 <= lines <= 2 * windows


def test_forged_addresses_do_not_hide_the_one_that_the_proxy_saw(
    target: Target, attacker: str
) -> None:
    began_at = time.monotonic()
    lies = [f"10.0.0.{number}, {attacker}" for number in range(FLOOD)]
    assert statuses(flood(target, *lies))[200] in passing("requests", began_at)


def test_addresses_of_one_ipv6_network_share_a_budget(target: Target) -> None:
    began_at, network = time.monotonic(), f"2001:db8:1:{next(_numbers)}"
    addresses = [f"{network}::{number:x}" for number in range(FLOOD)]
    assert statuses(flood(target, *addresses))[200] in passing("requests", began_at)
    assert statuses(flood(target, f"2001:db8:2:{next(_numbers)}::1")) == {200: 1}


def test_connections_of_one_address_share_its_budget(target: Target, attacker: str) -> None:
    began_at, said = time.monotonic(), Counter[int]()
    for _ in range(FLOOD):
        said += statuses(flood(target, attacker))
    assert said[200] in passing("requests", began_at)


def test_bytes_beyond_the_budget_get_429(target: Target, attacker: str, neighbour: str) -> None:
    large = NOTHING + b" " * 4000
    answers = flood(target, attacker, body=large, times=6)
    assert [answer.status for answer in answers[:2]] == [200, 200]
    refused = next(answer for answer in answers if answer.status == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 4
    assert statuses(flood(target, neighbour, body=large)) == {200: 1}


def test_handshakes_beyond_the_budget_are_refused_inside_bayeux(
    target: Target, attacker: str, neighbour: str
) -> None:
    began_at = time.monotonic()
    replies = [answer.messages()[0] for answer in flood(target, attacker, body=HELLO, times=18)]
    assert sum(reply["successful"] for reply in replies) in passing("handshakes", began_at)
    refused = next(reply for reply in replies if not reply["successful"])
    assert refused["error"] == OVER.format("handshakes")
    assert refused["advice"]["reconnect"] == "handshake"
    assert refused["advice"]["interval"] > 0
    assert flood(target, neighbour, body=HELLO)[0].messages()[0]["successful"]


class Caller:
    """A session over a socket that a proxy has passed on."""

    def __init__(self, target: Target, address: str) -> None:
        self.socket = SocketWire(target.url, via_proxy(address))
        self.client_id = self.socket.shake_hands()["clientId"]

    def ask(self, *messages: Any) -> list[dict[str, Any]]:
        self.socket.say(*messages)
        return self.socket.hear()

    def publish(self, *data: object) -> list[str | None]:
        message = {"channel": "/a", "clientId": self.client_id}
        replies = self.ask(*({**message, "data": each} for each in data))
        return [reply.get("error") for reply in replies]


def test_over_sockets_messages_beyond_the_budget_are_refused_and_the_sockets_stay(
    target: Target, attacker: str, neighbour: str
) -> None:
    began_at = time.monotonic()
    attackers = [Caller(target, attacker) for _ in range(3)]
    bystander = Caller(target, neighbour)
    with ExitStack() as stack:
        for each in (*attackers, bystander):
            stack.enter_context(each.socket)
        errors = [error for each in attackers for error in each.publish(*range(8))]
        assert set(errors) == {None, OVER.format("publishes")}
        flood = [each.publish("flood")[0] for _ in range(15) for each in attackers]
        passed = sum(error != OVER.format("requests") for error in flood)
        # So did the upgrade, the handshake and the first messages of each.
        assert passed + 3 * len(attackers) < passing("requests", began_at).stop
        assert [bystander.publish(number) for number in range(5)] == [[None]] * 5


def test_upgrades_beyond_the_budget_get_429(target: Target, attacker: str, neighbour: str) -> None:
    said = []
    for address in [attacker] * 40 + [neighbour]:
        with SocketWire(target.url, via_proxy(address)) as socket:
            said.append(socket.upgrade.status)
    assert said[:20] == [101] * 20
    assert 429 in said
    assert said[-1] == 101


def test_a_flood_from_one_address_does_not_affect_others(target: Target, attacker: str) -> None:
    with target.bystander():
        assert statuses(flood(target, attacker, times=500))[429] > 400


def test_clients_on_this_machine_have_no_budget_whatever_their_headers_say(
    target_with: MakeTarget, attacker: str
) -> None:
    target = target_with(**RATES)
    answers = flood(target, attacker, body=HELLO, times=FLOOD)
    refusals = {answer.messages()[0].get("error") for answer in answers}
    # A busy server refuses everybody, which is not the limit in question.
    assert refusals <= {None, BUSY}
    with target.person() as person:
        message = person.message("/a", data=1)
        assert all(reply["successful"] for reply in person.ask(*[message] * 50).messages())
