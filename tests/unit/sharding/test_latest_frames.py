"""Frames are remembered for a time in which their store answers, in case that it loses them."""

from holdfast.cluster.places import NOWHERE
from holdfast.sharding.latest_frames import LatestFrames
from holdfast.store.log_scripts import FOR_ALL, Parts


def remembered(latest: LatestFrames) -> list[bytes]:
    return [frame.parts[FOR_ALL] for frame in latest.all()]


def add(latest: LatestFrames, content: bytes, now: float) -> None:
    latest.add(NOWHERE, NOWHERE, Parts(1, {FOR_ALL: content}), now)


def test_frames_get_older_only_while_the_store_answers() -> None:
    latest = LatestFrames()
    add(latest, b"first", 100.0)
    add(latest, b"second", 109.0)
    latest.forget(answered_at=110.0)
    assert remembered(latest) == [b"first", b"second"]
    add(latest, b"third", 140.0)
    assert remembered(latest) == [b"first", b"second", b"third"]
    latest.forget(answered_at=115.0)
    assert remembered(latest) == [b"second", b"third"]


def test_only_the_last_frames_are_remembered_if_they_are_large() -> None:
    latest = LatestFrames(most_bytes=10)
    for content in (b"123456", b"1234", b"12345"):
        add(latest, content, 100.0)
    assert remembered(latest) == [b"1234", b"12345"]
