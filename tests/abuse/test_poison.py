"""Messages that all receivers refuse, and receivers that refuse all: neither silences a channel."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from tests.abuse.attacker import TIMEOUT_S, Person
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.slowness import times_slower

VERDICTS = {"ext": {"ack": True, "delivery": True}}
# What a page throws on that expects objects.
POISON: list[Any] = [None, 7, "text", [], [[None]], True]
CHANNEL = "/chat"
ERROR = "user.update.error"
SLOWER = round(times_slower(most=4.0))
# The guard decides within a sixth of a second, or in a window in which pages hear as much.
HASTY = {
    "channels": {CHANNEL: {"guard": True}},
    "guard_window": 2000 * SLOWER,
    "guard_retry": 100,
}


class Receiver:
    """An open page, and the messages that it shows."""

    def __init__(self, person: Person, takes: Callable[[Any], bool]) -> None:
        self._person = person
        self._takes = takes
        self._batch = 0
        self.shown: list[Any] = []
        person.subscribe(CHANNEL)
        self.hear()

    def hear(self) -> None:
        """Connect, and refuse the messages that this page cannot take."""
        *events, reply = self._connect([])
        self._batch = reply["ext"]["ack"]
        refused = [each for each in events if not self._takes(each["data"])]
        self.shown += [each["data"] for each in events if self._takes(each["data"])]
        if refused:
            seqs = [each["ext"]["delivery"]["seq"] for each in refused]
            data = [{"seq": seq, "errorCode": ERROR} for seq in seqs]
            self._person.publish("/service/delivery", data)

    def _connect(self, verdicts: list[Any]) -> list[Any]:
        ext = {"ack": self._batch, "delivery": {"verdicts": verdicts}}
        return self._person.connect(ext=ext, advice={"timeout": 0}).messages()


@pytest.fixture
def hasty(target_with: MakeTarget) -> Target:
    return target_with(**HASTY)


def enter(stack: ExitStack, target: Target, **handshake: Any) -> Person:
    """Somebody who stays until the end."""
    return stack.enter_context(target.person(**handshake))


def is_object(data: Any) -> bool:
    return isinstance(data, dict)


def nothing(data: Any) -> bool:
    return False


def silence(eve: Person, receivers: Sequence[Receiver], target: Target) -> None:
    """Publish what they accept, then what they refuse, until the channel is held."""
    eve.publish(CHANNEL, {"text": "hi"})
    for receiver in receivers:
        receiver.hear()
    deadline = time.monotonic() + TIMEOUT_S
    while target.metric("holdfast_channels_held_back") == 0:
        assert time.monotonic() < deadline
        eve.publish(CHANNEL, None)
        for receiver in receivers:
            receiver.hear()


def test_malformed_publishes_by_many_clients_do_not_silence_a_channel(hasty: Target) -> None:
    with ExitStack() as stack:
        pages = [Receiver(enter(stack, hasty, **VERDICTS), is_object) for _ in range(4)]
        accomplices = [Receiver(enter(stack, hasty, **VERDICTS), nothing) for _ in range(6)]
        strangers = [enter(stack, hasty) for _ in POISON]
        ann = enter(stack, hasty)
        said: list[Any] = []
        deadline = time.monotonic() + 3 * SLOWER
        while time.monotonic() < deadline:
            number = len(said)
            said.append({"number": number})
            for stranger, data in zip(strangers, POISON, strict=True):
                stranger.publish(CHANNEL, data)
            ann.publish(CHANNEL, said[-1])
            for receiver in (*accomplices, *pages):
                receiver.hear()
            assert hasty.metric("holdfast_channels_held_back") == 0
        for page in pages:
            page.hear()
            assert page.shown == said
    assert "is held back" not in hasty.log()


def test_a_silenced_quiet_channel_opens_when_another_client_publishes(
    hasty: Target,
) -> None:
    with ExitStack() as stack:
        pages = [Receiver(enter(stack, hasty, **VERDICTS), is_object) for _ in range(4)]
        silence(enter(stack, hasty), pages, hasty)
        ann = enter(stack, hasty)
        asked = {"delivery": {"refuseHeld": True}}
        refused = ann.ask(ann.message(CHANNEL, data={"text": "urgent"}, ext=asked)).messages()[0]
        assert refused["error"].startswith("503:communication.user.holdback,")
        ann.publish(CHANNEL, {"text": "hello"})
        deadline = time.monotonic() + TIMEOUT_S
        while any({"text": "hello"} not in page.shown for page in pages):
            assert time.monotonic() < deadline
            for page in pages:
                page.hear()
        assert hasty.metric("holdfast_channels_held_back") == 0
    hasty.until_logged("flows again")


def test_receivers_of_an_attacker_do_not_keep_a_channel_held(hasty: Target) -> None:
    """Whatever the order of the attacker's receivers, the guard soon probes others."""
    is_hostile = False

    def as_an_accomplice(data: Any) -> bool:
        return is_object(data) and not is_hostile

    with ExitStack() as stack:
        accomplices = [
            Receiver(enter(stack, hasty, **VERDICTS), as_an_accomplice) for _ in range(9)
        ]
        pages = [Receiver(enter(stack, hasty, **VERDICTS), is_object) for _ in range(4)]
        everybody = [*accomplices, *pages]
        silence(enter(stack, hasty), everybody, hasty)
        is_hostile = True
        ann = enter(stack, hasty)
        ann.publish(CHANNEL, {"text": "hello"})
        deadline = time.monotonic() + TIMEOUT_S
        while any({"text": "hello"} not in page.shown for page in pages):
            assert time.monotonic() < deadline
            for receiver in everybody:
                receiver.hear()
