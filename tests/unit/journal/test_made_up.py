"""Generated journals have the totals that their generator reports."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.journal.generate import generate
from bench.journal.life import Size
from bench.journal.outlets import Files
from holdfast.journal.frame import decode
from holdfast.journal.schema import SETTLED, Event, Kind
from holdfast.journal.unfold import unfold

# A copy that moves goes on in another queue.
ENDS = SETTLED - {Kind.MOVED}


@pytest.fixture
def truth(tmp_path: Path) -> dict[str, Any]:
    return generate(Files(tmp_path), events=4000, nodes=2, hours=0.05, seed=1, size=Size(30))


def entries(file: Path) -> Iterator[tuple[int, bytes]]:
    data = file.read_bytes()
    while data:
        length = int.from_bytes(data[:4])
        line, _, frame = data[4 : 4 + length].partition(b"\n")
        yield orjson.loads(line)["seq"], frame
        data = data[4 + length :]


def events(folder: Path) -> list[Event]:
    found = []
    for file in sorted(folder.glob("*.frames")):
        numbers, frames = zip(*entries(file), strict=True)
        assert numbers == tuple(range(1, len(numbers) + 1))
        for frame in frames:
            found += unfold(decode(frame))
    return found


@pytest.mark.slow
def test_the_totals_of_a_generated_journal_are_those_of_its_events(
    tmp_path: Path, truth: dict[str, Any]
) -> None:
    found = events(tmp_path)
    kinds = Counter(event.kind for event in found)
    assert kinds == truth["kinds"]
    assert len(found) == truth["events"]
    opened = sum(event.copies or 0 for event in found) + kinds[Kind.REPLAYED]
    assert opened - sum(kinds[kind] for kind in ENDS) == truth["open"]


@pytest.mark.slow
def test_a_generated_journal_has_every_kind_of_event(tmp_path: Path) -> None:
    # Replays come a minute after a death.
    truth = generate(Files(tmp_path), events=40_000, nodes=1, hours=0.2, seed=1, size=Size(30))
    kinds = {value for name, value in vars(Kind).items() if name.isupper()}
    # There is one shard, and its store is never away.
    assert kinds - truth["kinds"].keys() == {Kind.DROPPED, Kind.EARLY, Kind.GAP}
    found = [event for event in events(tmp_path) if event.kind in (Kind.REQUEST, Kind.REPLY)]
    hows = {(event.kind, event.what) for event in found}
    assert {what for _, what in hows} == {
        *("asked", "answered", "refused", "timeout", "no_responders"),
        *("accepted", "late"),
    }


@pytest.mark.slow
def test_every_copy_in_a_generated_journal_ends_once_at_most(
    tmp_path: Path, truth: dict[str, Any]
) -> None:
    ends: Counter[tuple[object, ...]] = Counter()
    for event in events(tmp_path):
        if event.kind in ENDS:
            ends[event.origin, event.msg, event.receiver] += 1
        elif event.kind == Kind.REPLAYED:
            ends[event.origin, event.msg, event.receiver] -= 1
    assert max(ends.values()) == 1


@pytest.mark.slow
def test_no_generated_event_is_earlier_than_the_publish_of_its_message(
    tmp_path: Path, truth: dict[str, Any]
) -> None:
    for event in events(tmp_path):
        assert event.msg is None or event.ts * 1000 >= event.msg - 1_000_000


def test_one_channel_may_have_most_of_the_messages(tmp_path: Path) -> None:
    size = Size(receivers=30, channels=50, busiest=0.9)
    generate(Files(tmp_path), events=4000, nodes=1, hours=0.05, seed=1, size=size)
    channels = Counter(event.channel for event in events(tmp_path) if event.kind == Kind.PUBLISHED)
    assert channels.most_common(1)[0][1] > 0.8 * channels.total()
    assert len(channels) > 10
