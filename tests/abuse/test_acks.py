"""Acks that are wrong or never come: nothing is lost, and nothing grows without bound."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.abuse.attacker import MIB, Person
from tests.abuse.target import Target

WITH_ACK = {"ack": True}
# Numbers of batches that do not exist, ...
WRONG: list[Any] = [-1, -(2**63), 2**64 - 1, 999, 1e308]
# ... and values that are no numbers of batches.
NONSENSE: list[Any] = [
    1.5,
    "1",
    "x" * 10_000,
    True,
    False,
    None,
    [],
    [1],
    {},
    {"ack": 1},
]


@pytest.fixture
def receiver(target: Target) -> Iterator[Person]:
    with target.person(ext=WITH_ACK) as person:
        person.subscribe("/a")
        person.connect(ext={"ack": 0}, advice={"timeout": 0})
        yield person


def publish(target: Target, *data: object) -> None:
    with target.person() as publisher:
        for each in data:
            publisher.publish("/a", each)
        publisher.ask(publisher.message("/meta/disconnect"))


def poll(receiver: Person, ack: Any) -> list[Any]:
    """The data of a connect that is answered at once."""
    answer = receiver.connect(ext={"ack": ack}, advice={"timeout": 0})
    assert answer.status == 200, answer.body
    assert answer.messages()[-1]["successful"], answer.body
    return [message["data"] for message in answer.messages()[:-1]]


def batch(receiver: Person) -> int:
    """The number of the next batch; acknowledges nothing."""
    answer = receiver.connect(ext={"ack": 0}, advice={"timeout": 0})
    number: int = answer.messages()[-1]["ext"]["ack"]
    return number


def rest(receiver: Person) -> list[Any]:
    """All unsettled events, acknowledged batch by batch."""
    found: list[Any] = []
    ack = 0
    while True:
        *events, reply = receiver.connect(ext={"ack": ack}, advice={"timeout": 0}).messages()
        if not events:
            return found
        found += [event["data"] for event in events]
        ack = reply["ext"]["ack"]


@pytest.mark.parametrize("ack", WRONG)
def test_a_wrong_number_settles_nothing(ack: Any, receiver: Person, target: Target) -> None:
    publish(target, 1, 2, 3)
    assert poll(receiver, 0) == [1, 2, 3]
    for _ in range(3):
        assert poll(receiver, ack) == [1, 2, 3]
    assert rest(receiver) == [1, 2, 3]


@pytest.mark.parametrize("ack", NONSENSE, ids=[repr(each)[:20] for each in NONSENSE])
def test_nonsense_is_refused_and_settles_nothing(
    ack: Any, receiver: Person, target: Target
) -> None:
    publish(target, 1, 2, 3)
    poll(receiver, 0)
    answer = receiver.connect(ext={"ack": ack}, advice={"timeout": 0})
    (reply,) = answer.messages()
    assert (answer.status, reply["error"]) == (200, "400:user.illegalArgument,ack:ext_invalid")
    assert rest(receiver) == [1, 2, 3]


def test_a_connect_without_an_ack_settles_nothing(receiver: Person, target: Target) -> None:
    publish(target, 1)
    without: list[dict[str, Any]] = [{}, {"ext": {}}, {"ext": None}, {"ext": {"other": None}}]
    for fields in without:
        answer = receiver.connect(advice={"timeout": 0}, **fields)
        assert [message.get("data") for message in answer.messages()] == [1, None]


def test_acks_of_batches_that_were_never_sent_are_counted(receiver: Person, target: Target) -> None:
    before = target.metric("holdfast_acks_out_of_range_total")
    poll(receiver, 10_000)
    poll(receiver, -5)
    assert target.metric("holdfast_acks_out_of_range_total") == before + 2


def test_an_ack_of_another_session_settles_nothing(receiver: Person, target: Target) -> None:
    with target.person(ext=WITH_ACK) as other:
        other.subscribe("/a")
        other.connect(ext={"ack": 0}, advice={"timeout": 0})
        publish(target, 1)
        assert poll(receiver, 0) == [1]
        poll(other, 0)
        poll(other, batch(other))
        assert poll(receiver, 0) == [1]


def test_two_connects_with_the_same_id_in_one_batch_lose_nothing(
    receiver: Person, target: Target
) -> None:
    publish(target, 1, 2)
    same = receiver.connect_message(id="same", ext={"ack": 0}, advice={"timeout": 0})
    answer = receiver.ask(same, same)
    assert [message["data"] for message in answer.messages() if "data" in message] == [1, 2]
    assert poll(receiver, 0) == [1, 2]
    without_id = receiver.connect_message(ext={"ack": 0}, advice={"timeout": 0})
    assert receiver.ask(without_id, without_id).status == 200
    assert rest(receiver) == [1, 2]


def test_many_empty_batches_are_not_remembered(receiver: Person, target: Target) -> None:
    for _ in range(3000):
        receiver.say(receiver.connect_message(ext={"ack": 0}, advice={"timeout": 0}))
        receiver.answer()
    assert target.growth_mib() < 8


def test_a_client_that_never_acks_gets_redeliveries_ever_more_slowly(
    receiver: Person, target: Target
) -> None:
    """CVE-2025-53114: a client that connects for ever with a fixed number."""
    publish(target, "x" * 1000)
    with target.bystander():
        begin, rounds = time.monotonic(), 0
        while time.monotonic() - begin < 1.0:
            receiver.ask(receiver.connect_message(ext={"ack": 0}))
            rounds += 1
        assert rounds < 20
        for _ in range(20):
            publish(target, *["x" * MIB] * 2)
            receiver.ask(receiver.connect_message(ext={"ack": 0}, advice={"timeout": 0}))
    # Its queue takes 8 MiB, and so do those of other clients that are gone; what waits
    # for the store is bounded, and the rest is counted, not kept.
    assert target.growth_mib() < 100
    assert target.metric("holdfast_entries_settled_total", outcome="dead") > 0
    assert target.metric("holdfast_entries_unaccounted") == 0
    assert receiver.ask(receiver.message("/meta/disconnect")).messages()[-1]["successful"]
