"""The journal counts refused publishes: by reason, channel and minute, never each by itself."""

from collections import Counter

import pytest

from holdfast.journal.schema import Event, Kind
from tests.unit.bayeux.harness import Server, server_of
from tests.unit.journal.ledger import Writing

pytestmark = pytest.mark.untraced


class Scene:
    """A server with a journal, and a client that publishes."""

    def __init__(self) -> None:
        self.store = Writing()
        self.server: Server = server_of(keeper=self.store, journal=self.store.writer)
        self.client = self.server.connected()

    def refuse(self, channel: str, times: int = 1) -> None:
        """Publish without data, which is refused."""
        for _ in range(times):
            reply = self.client.send({"channel": channel}).reply
            assert not reply["successful"]

    def events(self) -> list[Event]:
        found = [each for each in self.store.events() if each.kind == Kind.PUBLISHES_REFUSED]
        self.store.shelf.frames.clear()
        return found

    def counted(self, seconds: float = 61.0) -> dict[tuple[str | None, str | None], int | None]:
        """What is journalled in this time: each reason and channel once."""
        self.server.advance(seconds)
        # The session before has ended.
        self.client = self.server.connected()
        events = self.events()
        found = {(each.what, each.channel): each.number for each in events}
        assert len(found) == len(events)
        return found


def test_refusals_are_counted_once_a_minute_by_reason_and_channel() -> None:
    scene = Scene()
    scene.counted()
    scene.refuse("/a", 3)
    scene.refuse("/b")
    scene.client.send({"channel": "/a/*", "data": 1})
    scene.server.advance(10.0)
    scene.refuse("/a")
    assert scene.counted() == {
        ("data_missing", "/a"): 4,
        ("data_missing", "/b"): 1,
        ("channel_invalid", "/a/*"): 1,
    }
    assert scene.counted() == {}
    scene.refuse("/b")
    assert scene.counted() == {("data_missing", "/b"): 1}


def test_what_names_no_channel_has_none_and_meta_messages_are_no_publishes() -> None:
    scene = Scene()
    scene.counted()
    scene.client.send({"channel": "not a channel", "data": 1})
    scene.client.send({"channel": 7, "data": 1})
    scene.client.send({"channel": "/meta/subscribe"})
    scene.client.send({"channel": "/meta/unknown"})
    found = scene.counted()
    assert {channel for _, channel in found} == {None}
    assert sum(number or 0 for number in found.values()) == 2


def test_replies_that_are_refused_count_on_one_channel() -> None:
    scene = Scene()
    scene.counted()
    for number in range(3):
        scene.client.publish(f"/ret/abcdefghijklmnopqrstu{number}/L000001", 1)
    [(_, channel)] = scene.counted()
    assert channel == "/ret/*"


def test_very_many_channels_make_a_limited_number_of_events_and_no_refusal_is_left_out() -> None:
    scene = Scene()
    scene.counted()
    for number in range(1000):
        scene.refuse(f"/flood/{number}")
    found = scene.counted()
    assert len(found) == 101
    assert found["data_missing", None] == 900
    assert sum(number or 0 for number in found.values()) == 1000


def test_very_long_names_of_channels_stay_out_of_the_journal() -> None:
    scene = Scene()
    scene.counted()
    scene.refuse("/" + "a" * 255)
    scene.refuse("/" + "b" * 256)
    assert {channel and channel[:2] for _, channel in scene.counted()} == {"/a", None}


def test_a_stop_journals_what_was_counted_last() -> None:
    scene = Scene()
    scene.counted()
    scene.refuse("/a")
    scene.server.bayeux.stop(scene.server.now)
    scene.store.writer.flush(scene.server.now)
    assert Counter(each.what for each in scene.events()) == {"data_missing": 1}


def test_an_accepted_publish_counts_as_none() -> None:
    scene = Scene()
    scene.counted()
    scene.client.publish("/a", 1)
    assert scene.counted() == {}
