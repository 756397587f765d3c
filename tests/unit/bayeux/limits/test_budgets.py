"""Budgets: an address or a subject that does something too often is refused, and no other is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.limits.budgets import BURST_S, Budget
from holdfast.bayeux.wire.caller import UNKNOWN, Caller
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json, Server, Socket

HERE, THERE = "203.0.113.7", "198.51.100.9"
OVER = "429:{}:budget_exceeded"


def caller(network: str) -> Caller:
    return Caller(address=network, network=network)


def server(**rates: int) -> Server:
    """Its buckets hold ten times the rate."""
    budgets: dict[str, Any] = {f"budget_{name}": rate for name, rate in rates.items()}
    return Server(DeliveryWire, **budgets)


def client(
    server: Server, network: str = HERE, subject: str | None = None, **fields: Any
) -> Client:
    ext: Json = {"delivery": True}
    if subject is not None:
        ext["delivery"] = {"session": f"{subject}/1"}
    client = server.client(caller=caller(network), ext=ext, **fields)
    assert client.client_id is not None
    return client


def errors(client: Client, count: int) -> list[str | None]:
    return [client.publish("/a", each).reply.get("error") for each in range(count)]


def overspent(server: Server) -> dict[str, int]:
    return {each.kind: each.overspent for each in server.bayeux.state.budgets.all if each.overspent}


def test_publishes_beyond_the_budget_of_an_address_are_refused() -> None:
    place = server(publishes=1)
    spender, neighbour = client(place), client(place)
    elsewhere = client(place, THERE)
    assert errors(spender, 10) == [None] * 10
    assert errors(neighbour, 2) == [OVER.format("publishes")] * 2
    assert errors(elsewhere, 10) == [None] * 10
    place.advance(1.0)
    assert errors(neighbour, 2) == [None, OVER.format("publishes")]
    assert overspent(place) == {"publishes": 3}


def test_a_refused_publish_gets_an_interval_as_advice_and_later_connects_do_not() -> None:
    place = server(publishes=1)
    spender = client(place)
    spender.connect()
    errors(spender, 10)
    refused = spender.publish("/a", 1).reply
    assert refused["advice"] == {"reconnect": "retry", "interval": 1000, "timeout": 30_000}
    assert spender.connect(advice={"timeout": 0}).reply["advice"]["interval"] == 0
    spender.publish("/a", 1)
    place.advance(1.0)
    held = spender.connect()
    place.advance(30.1)
    assert held.reply["advice"]["interval"] == 0


def test_a_publish_beyond_the_budget_is_not_delivered() -> None:
    place = server(publishes=1)
    spender, reader = client(place), client(place, THERE)
    reader.subscribe("/a")
    batch = [{"channel": "/a", "data": each} for each in range(12)]
    said = [reply["successful"] for reply in spender.send(*batch).replies]
    assert said == [True] * 10 + [False] * 2
    assert reader.connect().data == list(range(10))


def test_a_subject_has_one_budget_for_all_its_addresses() -> None:
    place = server(publishes=1)
    at_home, at_work = client(place, HERE, "ada"), client(place, THERE, "grace")
    away = place.client(caller=caller(THERE), ext={"delivery": {"session": "ada/2"}})
    assert errors(at_home, 6) + errors(away, 4) == [None] * 10
    assert errors(away, 1) == [OVER.format("publishes")]
    # Refused publishes of ada cost her neighbour nothing.
    assert errors(at_work, 7) == [None] * 6 + [OVER.format("publishes")]


def test_a_handshake_beyond_the_budget_is_refused_and_advised_to_come_back_later() -> None:
    place = server(handshakes=1)
    for _ in range(10):
        client(place)
    refused = place.guest(caller=caller(HERE)).handshake().reply
    assert refused["error"] == OVER.format("handshakes")
    assert refused["advice"]["reconnect"] == "handshake"
    assert refused["advice"]["interval"] >= 1000
    client(place, THERE)


def test_a_subject_has_one_budget_of_handshakes_for_all_its_addresses() -> None:
    place = server(handshakes=1)
    for number in range(10):
        client(place, f"10.0.0.{number}", "ada")
    guest = place.guest(caller=caller(THERE))
    before = len(place.bayeux.state.sessions)
    refused = guest.handshake(ext={"delivery": {"session": "ada/1"}}).reply
    assert refused["error"] == OVER.format("handshakes")
    assert refused["advice"]["reconnect"] == "handshake"
    assert len(place.bayeux.state.sessions) == before
    client(place, THERE, "grace")


@pytest.mark.parametrize("code", ["user.update.holdback", "user.update.holdback.own"])
def test_holding_messages_back_costs_no_letters(code: str) -> None:
    place = server(letters=1)
    receiver, publisher = client(place), client(place, THERE)
    receiver.subscribe("/a")
    errors(publisher, 12)
    seqs = [event["ext"]["delivery"]["seq"] for event in receiver.connect().events]
    verdicts = [{"seq": seq, "errorCode": code} for seq in seqs]
    for part in (verdicts[:11], verdicts[11:]):
        assert receiver.publish("/service/delivery", part).reply["successful"]


def test_refusals_beyond_the_budget_have_no_effect_and_can_be_given_later() -> None:
    place = server(letters=1)
    receiver, publisher = client(place), client(place, THERE)
    receiver.subscribe("/a")
    errors(publisher, 12)
    events = receiver.connect().events
    seqs = [event["ext"]["delivery"]["seq"] for event in events]
    assert len(seqs) == 12
    refusals = [{"seq": seq, "errorCode": "user.update.error"} for seq in seqs]
    counters = place.bayeux.state.hub.counters

    def give(*verdicts: Json) -> Json:
        ext = {"delivery": {"verdicts": list(verdicts)}}
        return receiver.connect(advice={"timeout": 0}, ext=ext).replies[-1]

    assert give(*refusals[:10])["successful"]
    assert counters.dead == 10
    refused = give(*refusals[10:])
    assert refused["error"] == OVER.format("letters")
    assert refused["advice"]["reconnect"] == "retry"
    assert counters.dead == 10
    assert give({"seq": seqs[10], "state": "OK"})["successful"]
    said = receiver.publish("/service/delivery", refusals[11:])
    assert said.reply["error"] == OVER.format("letters")
    place.advance(1.0)
    assert receiver.publish("/service/delivery", refusals[11:]).reply["successful"]
    place.turn()
    assert counters.dead == 11
    assert place.balances()


def test_the_messages_of_websocket_requests_beyond_the_budget_are_refused() -> None:
    place = server(requests=1)
    socket = Socket()
    spender = client(place, socket=socket)
    other = client(place, THERE, socket=Socket())
    assert errors(spender, 9) == [None] * 9
    said = spender.send({"channel": "/a", "data": 1}, {"channel": "/meta/connect"})
    assert [reply["error"] for reply in said.elements] == [OVER.format("requests")] * 2
    assert [reply["advice"]["interval"] for reply in said.elements] == [1000] * 2
    assert errors(other, 9) == [None] * 9


def test_a_subject_pays_for_the_bytes_of_its_http_requests() -> None:
    place = server(bytes=100)
    ada = client(place, HERE, "ada")
    large = ada.publish("/a", "x" * 900).reply
    assert large["successful"]
    assert ada.publish("/a", "x" * 900).reply["error"] == OVER.format("bytes")
    # The web layer counts the bytes that an address sends over HTTP.
    nobody = client(place)
    assert nobody.publish("/a", "x" * 2000).reply["successful"]


def test_a_client_without_address_and_subject_is_not_limited() -> None:
    place = server(requests=1, handshakes=1, publishes=1, bytes=1, letters=1)
    for sender in (place.client(caller=UNKNOWN), place.client(socket=Socket())):
        assert errors(sender, 50) == [None] * 50


@pytest.mark.slow
@pytest.mark.parametrize(("shards", "admitted"), [(1, 20), (2, 10), (3, 7), (64, 1)])
def test_one_of_several_shards_admits_its_part_of_what_an_address_may_do(
    shards: int, admitted: int
) -> None:
    budget = Budget("things", 2, shards)
    waits = [budget.spend(HERE, NOBODY, 1000.0) for _ in range(25)]
    assert waits.index(next(each for each in waits if each)) == admitted
    # The next one comes after its part of the time, too.
    assert max(waits) == pytest.approx(shards / 2)


def test_a_shard_has_the_whole_budget_of_a_subject() -> None:
    budget = Budget("things", 2, 4)
    waits = [budget.spend("", "ada", 1000.0) for _ in range(25)]
    assert waits.count(0.0) == 20


def test_a_budget_of_zero_is_no_limit() -> None:
    place = server(requests=0, handshakes=0, publishes=0, bytes=0, letters=0)
    assert errors(client(place, subject="ada"), 500) == [None] * 500


def test_handshakes_refused_by_a_budget_do_not_use_up_the_rate_of_admission() -> None:
    place = Server(budget_handshakes=1, handshake_rate=15)
    for _ in range(100):
        place.guest(caller=caller(HERE)).handshake()
    replies = [place.guest(caller=caller(THERE)).handshake().reply for _ in range(5)]
    assert all(reply["successful"] for reply in replies)


SPENDINGS = st.tuples(
    st.sampled_from([HERE, THERE, ""]),
    st.sampled_from([NOBODY, "ada", "grace"]),
    st.integers(0, 8),
    st.integers(1, 7),
)


@pytest.mark.slow
@given(st.lists(SPENDINGS, max_size=60))
def test_address_and_subject_both_pay_or_neither_does(
    spendings: list[tuple[str, str, int, int]],
) -> None:
    budget, now = Budget("things", 1), 1000.0
    full = float(BURST_S)
    levels = dict.fromkeys((HERE, THERE, "ada", "grace"), full)
    refused = 0
    for network, subject, eighths, count in spendings:
        now += eighths / 8
        levels = {key: min(full, level + eighths / 8) for key, level in levels.items()}
        payers = [key for key in (network, subject) if key in levels]
        can_pay = all(levels[key] >= count for key in payers)
        assert (budget.spend(network, subject, now, count) == 0.0) == can_pay
        refused += not can_pay
        if can_pay:
            levels |= {key: levels[key] - count for key in payers}
    assert budget.overspent == refused


def test_a_subscribe_is_charged_for_its_kept_messages_before_it_has_an_effect() -> None:
    rules = {"/kept": ChannelSettings(history=100)}
    place = Server(DeliveryWire, channels=rules, budget_requests=1)
    for number in range(100):
        place.for_extensions.publish("/kept", number)
    message = {"channel": "/meta/subscribe", "subscription": "/kept", "ext": {"replay": -2}}
    first, second = client(place), client(place)
    assert first.send(message).reply["ext"]["replay"]["messages"] == 100
    refused = second.send(message)
    assert refused.reply["error"] == OVER.format("requests")
    assert not second.session.subscriptions
    assert overspent(place) == {"requests": 1}
    assert client(place, THERE).send(message).reply["successful"]
    place.advance(10.0)
    assert second.send(message).reply["successful"]


def test_doors_divide_what_an_address_may_ask_for_while_they_come_and_go() -> None:
    budget = Budget("things", 2, 6)
    waits = [budget.spend(HERE, NOBODY, 1000.0, doors=2) for _ in range(11)]
    assert [not each for each in waits] == [True] * 10 + [False]
    # Another door lives, and this one has a third of what is left: nothing.
    assert budget.spend(HERE, NOBODY, 1000.0, doors=3) > 0.0
    # What was spent before is not given back when doors die.
    assert budget.spend(HERE, NOBODY, 1000.0, doors=1) > 0.0
    assert budget.spend(HERE, NOBODY, 1000.5, doors=1) == 0.0


@pytest.mark.slow
def test_an_address_with_requests_at_all_doors_has_its_rate_however_many_there_are() -> None:
    for doors in (1, 3, 6):
        budgets = [Budget("things", 2, 6) for _ in range(doors)]
        passed = sum(
            not each.spend(HERE, NOBODY, 1000.0 + tick / 10, doors=doors)
            for tick in range(1000)
            for each in budgets
        )
        # In 100 seconds, beside the burst.
        assert passed == pytest.approx(20 + 200, rel=0.05)
