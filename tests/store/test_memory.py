"""The bytes that a waiting message and a dead letter take in the store besides the data."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from redis import Redis

from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.letters.dead import MAX_REASON, DeadLetter
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.trails import LONGEST_TRAIL, Attempt, first_and_last
from holdfast.store.format import scripts
from tests.store.model import Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, letter, message, session

pytestmark = [pytest.mark.valkey, pytest.mark.untraced]

# What is promised, in bytes.
MOST_WAITING = 600
MOST_WITH_HISTORY = 700
MOST_DEAD = 2048

NUMBER = 1000
# Names, codes, numbers and words are as long as they can be.
SOMEBODY = f"{'s' * 63}/999999999"
# Longer names than this one take 208 bytes more: then the store keeps sets in another way.
LONG = f"{'s' * 54}/999999999"
LONGEST_CODE = max(CODES, key=len)
OFTEN = 10**6
YEARS_MS = 10 * 365 * 24 * 3600 * 1000
POLICY: dict[str, Any] = {
    "retries": OFTEN,
    "delay": YEARS_MS,
    "oneway": False,
    "responseTimeout": YEARS_MS,
    "maxEntries": OFTEN,
    "onUserException": "continue",
    "ptp": False,
    "queue": {"maxEntries": OFTEN, "maxBytes": OFTEN},
    "session": {"name": SOMEBODY, "timeout": YEARS_MS, "maxSessions": OFTEN},
}


@pytest.fixture
def room(shared_valkey: ValkeyServer) -> Iterator[Room]:
    with Redis.from_url(shared_valkey.url) as redis:
        room = Room(redis)
        room.open()
        room.call(scripts.save(KEYS, [session(SOMEBODY)]))
        yield room


def cost(room: Room, messages: Sequence[Message]) -> float:
    """The bytes for each message of everything in the store but the session and the data."""
    names = room.names("*") - {KEYS.meta, KEYS.sessions}
    used = sum(room.redis.memory_usage(name, samples=0) or 0 for name in names)
    return (used - sum(len(each.wire) for each in messages)) / NUMBER


def messages(sender: str = f"client/{SOMEBODY}") -> list[Message]:
    made = [message(n) for n in range(NUMBER)]
    for each in made:
        each.sender = sender
    return made


def refused(n: int, text: str, transport: str) -> Attempt:
    time = 1_763_000_000_000 + n * 3_600_000
    return Attempt(n, time, "holdfast", transport, LONGEST_CODE, 10**8 + n, LONGEST_CODE, text)


ALIKE = [refused(OFTEN + n, "\x01" * 1000, "callback-polling") for n in range(50)]
DIFFERENT = [
    refused(OFTEN + n, chr(n) * 1000, ("callback-polling", "long-polling")[n % 2])
    for n in range(50)
]


def test_a_waiting_message_takes_at_most_600_bytes_besides_its_data(room: Room) -> None:
    waiting = messages()
    room.call(scripts.keep(KEYS, [(each, [SOMEBODY]) for each in waiting]))
    assert cost(room, waiting) <= MOST_WAITING


def test_each_further_receiver_of_a_message_takes_at_most_16_bytes(room: Room) -> None:
    waiting = messages("client/ann/1")
    room.call(scripts.keep(KEYS, [(each, ["joe/1"]) for each in waiting]))
    for_one = cost(room, waiting)
    members = [f"joe/{n}" for n in range(20)]
    room.call(scripts.keep(KEYS, [(each, members) for each in waiting]))
    assert for_one <= MOST_WAITING / 2
    assert cost(room, waiting) <= for_one + 19 * 16


@pytest.mark.parametrize("attempts", [ALIKE, DIFFERENT])
def test_a_waiting_message_with_a_long_trail_takes_at_most_700_bytes(
    room: Room, attempts: Sequence[Attempt]
) -> None:
    waiting = messages(f"client/{LONG}")
    room.call(scripts.keep(KEYS, [(each, [LONG]) for each in waiting]))
    room.call(scripts.save(KEYS, [session(LONG)]))
    trail, place = tuple(attempts[:LONGEST_TRAIL]), 10**15
    marks = {n: Mark(BASE + n, place, OFTEN, OFTEN, OFTEN, place, trail) for n in range(NUMBER)}
    room.call(scripts.mark(KEYS, {LONG: marks}))
    assert cost(room, waiting) <= MOST_WITH_HISTORY


def test_an_ordinary_dead_letter_takes_at_most_one_kib(room: Room) -> None:
    letters = [letter(n) for n in range(NUMBER)]
    room.call(scripts.dead_letter(KEYS, [(each, None) for each in letters]))
    assert cost(room, messages()) <= MOST_DEAD / 2


@pytest.mark.parametrize("attempts", [ALIKE, DIFFERENT])
def test_a_dead_letter_with_the_longest_texts_takes_at_most_two_kib(
    room: Room, attempts: Sequence[Attempt]
) -> None:
    dead = messages()
    for n, each in enumerate(dead):
        # No two letters are alike.
        each.channel = f"/{n}"
    letters = [
        DeadLetter.of(
            each,
            id=str(each.id),
            receiver=f"client/{SOMEBODY}",
            code=LONGEST_CODE,
            reason="\x01" * MAX_REASON,
            attempts=first_and_last(attempts),
            attempt_count=OFTEN,
            redelivered=OFTEN,
            policy=POLICY,
        )
        for each in dead
    ]
    assert len({each.fingerprint for each in letters}) == NUMBER
    room.call(scripts.dead_letter(KEYS, [(each, None) for each in letters]))
    assert cost(room, dead) <= MOST_DEAD
