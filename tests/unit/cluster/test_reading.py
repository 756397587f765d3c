"""A reader of a log: what it takes and shows, and when it reads on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from holdfast.cluster.frames import (
    COMPLETE,
    DURABLE,
    MESSAGE,
    Behind,
    Facts,
    Frame,
    LogEntry,
    Seen,
    write,
)
from holdfast.cluster.places import Place, place_of
from holdfast.cluster.reader_port import Gap, Move, NotTaken, Sorted
from holdfast.cluster.reading import LogReader
from holdfast.cluster.waiting import Fields

X, Y = "xxxxxxxx", "yyyyyyyy"


@dataclass
class Shard:
    """Takes what is durable, shows what is not on `/other`, and remembers what it was told."""

    moves: list[Move] = field(default_factory=list)
    kept: list[list[int]] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    unanswered: list[Callable[[NotTaken | None], None]] = field(default_factory=list)
    at_once: list[int] = field(default_factory=list)
    on_showed: Callable[[], None] = lambda: None
    # What has not been shown on another way.
    awaited: set[str] = field(default_factory=set)

    def sort(self, frame: Frame, *, is_new: bool) -> Sorted[LogEntry]:
        entries = frame.entries([channel != "/other" for channel in frame.channels])
        kept = [each for each in entries if each.flags & DURABLE]
        later, at_once = (entries, entries) if is_new else (kept, [])
        return Sorted(at_once, kept, later, sum(len(each.data) for each in kept))

    def take(
        self, move: Move, kept: Sequence[LogEntry], done: Callable[[NotTaken | None], None]
    ) -> None:
        self.moves.append(move)
        self.kept.append([each.id for each in kept])
        self.unanswered.append(done)

    def may_show(self, behind: Behind) -> bool:
        return self.awaited.isdisjoint(behind.values())

    def show_at_once(self, place: Place, entries: Sequence[LogEntry]) -> None:
        self.at_once += [each.id for each in entries]

    def showed_at_once(self) -> None:
        self.on_showed()

    def show(self, place: Place, entries: Sequence[LogEntry]) -> None:
        self.shown += [each.id for each in entries]

    def learn(self, place: Place, facts: Facts, seen: Seen) -> None:
        self.places.append(place)
        self.facts.append(facts)
        self.seen.append(seen)

    def note_gap(self, gap: Gap) -> None:
        self.gaps.append(gap)

    def complain(self, why: str) -> None:
        self.complaints.append(why)

    def answer(self, answer: NotTaken | None = None) -> None:
        self.unanswered.pop(0)(answer)


def entry(id: int, flags: int = DURABLE, channel: str = "/a", size: int = 2) -> LogEntry:
    return LogEntry(MESSAGE, channel, id, "ann", flags, b"{}".ljust(size))


def stored(
    place: str, before: str = "", *entries: LogEntry, **parts: bytes
) -> tuple[bytes, Fields]:
    """A frame in the stream."""
    fields = {b"before": before.encode(), b"place": place.encode(), b"all": write(entries)}
    fields |= {name.encode(): part for name, part in parts.items()}
    return place_of(place).id.encode(), fields


def frames(count: int, flags: int = DURABLE) -> list[tuple[bytes, Fields]]:
    """So many frames with an entry each."""
    places = ["", *[f"{X} 1-{n} {n}" for n in range(1, count + 1)]]
    return [stored(places[n], places[n - 1], entry(n, flags)) for n in range(1, count + 1)]


class Reading:
    """A reader with its shard."""

    def __init__(self, place: str = "", passed: str = "", since: str = "") -> None:
        self.shard = Shard()
        self.reader = LogReader(
            self.shard, own=3, place=place, passed=passed, since=place_of(since)
        )

    def hear(self, *found: tuple[bytes, Fields], now: float = 0.0) -> None:
        after = self.reader.next_read(now)
        assert after is not None
        self.reader.heard(after, found, now)

    def hear_each(self, *found: tuple[bytes, Fields], now: float = 0.0) -> None:
        """Read each with a read of its own."""
        for each in found:
            self.hear(each, now=now)


def test_frames_that_were_read_together_are_stored_together() -> None:
    at = Reading()
    passing = stored(f"{X} 1-4 4", f"{X} 1-3 3", entry(4, flags=0))
    at.hear(*frames(3), passing)
    assert at.shard.moves == [Move("", f"{X} 1-4 4", "")]
    assert at.shard.kept == [[1, 2, 3]]
    assert at.shard.shown == []
    at.shard.answer()
    assert at.shard.shown == [1, 2, 3, 4]
    assert at.reader.confirmed == Place(X, 1, 4, 4)
    assert (at.reader.taken, at.reader.has_followed) == (4, True)


def test_what_was_read_together_is_read_again_from_the_first_that_was_to_be_stored() -> None:
    at = Reading()
    passing = stored(f"{X} 1-1 1", "", entry(1, flags=0))
    others = frames(4)[1:]
    at.hear(passing, *others)
    assert at.shard.shown == [1]
    at.shard.answer(NotTaken(None))
    at.reader.tick(0.0)
    assert at.reader.next_read(9.0) == "1-1"
    at.hear(*others, now=9.0)
    assert at.shard.moves[1:] == [Move("", f"{X} 1-4 4", "")]
    at.shard.answer()
    assert at.shard.shown == [1, 2, 3, 4]


def test_what_is_much_is_stored_by_several_calls() -> None:
    at = Reading()
    large = [
        stored(f"{X} 1-{n} {n}", f"{X} 1-{n - 1} {n - 1}" if n > 1 else "", entry(n, size=200_000))
        for n in range(1, 6)
    ]
    at.hear(*large)
    assert at.shard.kept == [[1, 2], [3, 4], [5]]
    for _ in range(3):
        at.shard.answer()
    assert at.shard.shown == [1, 2, 3, 4, 5]


def test_frames_before_an_unreadable_one_are_stored() -> None:
    at = Reading()
    id, fields = frames(3)[2]
    at.hear(*frames(2), (id, {**fields, b"all": b"nonsense"}))
    assert at.shard.kept == [[1, 2]]
    assert len(at.shard.complaints) == 1


def test_durable_entries_are_shown_when_they_are_stored_in_order() -> None:
    at = Reading()
    at.hear_each(*frames(2))
    assert at.shard.moves == [
        Move("", f"{X} 1-1 1", ""),
        Move(f"{X} 1-1 1", f"{X} 1-2 2", ""),
    ]
    assert at.shard.shown == []
    at.shard.answer()
    assert at.shard.shown == [1]
    at.shard.answer()
    assert at.shard.shown == [1, 2]
    assert at.reader.next_read(0.0) == "1-2"
    assert at.reader.confirmed == Place(X, 1, 2, 2)
    assert at.reader.taken == 2


def test_passing_entries_are_shown_at_once_and_behind_durable_ones_after_these() -> None:
    at = Reading()
    at.hear(*frames(2, flags=0))
    assert at.shard.shown == [1, 2]
    third = stored(f"{X} 1-3 3", f"{X} 1-2 2", entry(3))
    fourth = stored(f"{X} 1-4 4", f"{X} 1-3 3", entry(4, flags=0))
    at.hear(third, fourth)
    assert at.shard.shown == [1, 2]
    at.shard.answer()
    assert at.shard.shown == [1, 2, 3, 4]


def test_the_place_follows_after_50_ms_if_there_is_nothing_to_store() -> None:
    at = Reading()
    at.hear(*frames(1, flags=0), now=10.0)
    at.reader.tick(10.04)
    assert at.shard.moves == []
    at.reader.tick(10.06)
    assert at.shard.moves == [Move("", f"{X} 1-1 1", "")]
    assert at.shard.kept == [[]]
    at.shard.answer()
    at.reader.tick(20.0)
    assert len(at.shard.moves) == 1


def test_the_place_follows_within_a_second_if_no_shard_waits_for_it() -> None:
    at = following()
    at.hear(stored(f"{X} 1-2 2", f"{X} 1-1 1", entry(2, flags=0)), now=11.0)
    assert not at.reader.has_followed
    assert not at.reader.is_awaited
    at.reader.tick(11.9)
    assert len(at.shard.moves) == 1
    at.reader.tick(12.0)
    assert at.shard.moves[1] == Move(f"{X} 1-1 1", f"{X} 1-2 2", "")


def test_the_place_follows_soon_behind_facts_but_not_behind_those_that_are_not_stored() -> None:
    at = following()
    news, facts = write((), {COMPLETE: "1"}), write((), {"* /a": "1"})
    at.hear(stored(f"{X} 1-2 1", f"{X} 1-1 1", all=news), now=11.0)
    assert not at.reader.is_awaited
    at.hear(stored(f"{X} 1-3 2", f"{X} 1-2 1", all=facts), now=11.1)
    assert at.reader.is_awaited
    assert at.reader.awaited == place_of(f"{X} 1-3 2")
    at.reader.tick(11.16)
    assert at.shard.moves[1] == Move(f"{X} 1-1 1", f"{X} 1-3 2", "")
    at.shard.answer()
    assert not at.reader.is_awaited


def test_what_comes_behind_a_frame_on_another_way_is_shown_before_the_next_frame() -> None:
    at = Reading()
    places: list[Place] = []

    def show() -> None:
        places.append(at.reader.at_once)
        # It may let the log go on, which does so by itself.
        at.reader.go_on()

    at.shard.on_showed = show
    at.hear(*frames(3, flags=0))
    assert places == [place_of(f"{X} 1-{n} {n}") for n in (1, 2, 3)]
    assert at.shard.shown == [1, 2, 3]


def test_facts_are_not_learned_before_what_they_come_behind_on_another_way() -> None:
    # The sender takes the place for a promise that this shard knows the facts.
    at = following()
    at.shard.awaited = {"7 2"}
    facts = write((), {"* /a": "1"}, behind={"3": "7 2"})
    at.hear(stored(f"{X} 1-2 1", f"{X} 1-1 1", all=facts), now=11.0)
    at.reader.follow(11.0)
    at.reader.tick(11.0)
    at.shard.answer()
    assert at.reader.confirmed == place_of(f"{X} 1-2 1")
    assert at.reader.learned == place_of(f"{X} 1-1 1")
    assert at.reader.is_awaited
    at.shard.awaited = set()
    at.reader.go_on()
    assert at.shard.facts[-1] == {"* /a": "1"}
    assert at.reader.learned == place_of(f"{X} 1-2 1")
    assert not at.reader.is_awaited


def test_the_place_follows_with_the_next_tick_if_it_has_to() -> None:
    at = following()
    at.reader.follow(11.0)
    assert not at.reader.is_awaited
    at.hear(stored(f"{X} 1-2 2", f"{X} 1-1 1", entry(2, flags=0)), now=11.0)
    at.reader.follow(11.01)
    assert at.reader.is_awaited
    at.reader.tick(11.01)
    assert at.shard.moves[1] == Move(f"{X} 1-1 1", f"{X} 1-2 2", "")


def following() -> Reading:
    """Return a reader whose store has the place behind the first frame."""
    at = Reading()
    at.hear(*frames(1, flags=0), now=10.0)
    at.reader.tick(10.06)
    at.shard.answer()
    return at


def test_entries_without_receivers_here_only_move_the_place() -> None:
    at = Reading()
    at.hear(stored(f"{X} 1-1 2", "", entry(1, channel="/other"), entry(2, channel="/other")))
    assert (at.shard.kept, at.shard.shown, at.reader.taken) == ([], [], 2)


def test_passing_entries_from_before_the_opening_of_this_shard_are_ignored() -> None:
    at = Reading(since=f"{X} 1-2 2")
    at.hear(*frames(3, flags=0))
    assert at.shard.shown == [3]


def test_parts_for_this_shard_are_read_and_those_for_others_are_not() -> None:
    at = Reading()
    parts = {"3": write([entry(2, flags=0)]), "4": write([entry(9, flags=0)])}
    at.hear(stored(f"{X} 1-1 3", "", entry(1, flags=0), **parts))
    assert at.shard.shown == [1, 2]


def test_facts_and_places_are_learned_in_order_with_messages() -> None:
    at = Reading()
    place = Place(Y, 1, 1, 1)
    facts = {b"before": b"", b"place": f"{X} 1-1 1".encode(), b"all": write([], {"f": "1"})}
    at.hear((b"1-1", facts))
    assert at.shard.facts == [{"f": "1"}]
    assert at.shard.places == [place_of(f"{X} 1-1 1")]
    at.hear(stored(f"{X} 1-2 2", f"{X} 1-1 1", entry(1)))
    seen = {b"before": f"{X} 1-2 2".encode(), b"place": f"{X} 1-3 2".encode()}
    at.hear((b"1-3", {**seen, b"all": write([], {}, {3: place})}))
    assert len(at.shard.seen) == 1
    at.shard.answer()
    assert at.shard.seen[1:] == [{3: place}]


def test_a_store_that_refuses_entries_gets_them_again_after_a_pause() -> None:
    at = Reading()
    at.hear_each(*frames(3), now=1.0)
    at.shard.answer()
    at.shard.answer(NotTaken(None))
    assert (at.reader.next_read(5.0), at.reader.is_ahead) == ("1-3", True)
    at.shard.answer(NotTaken(f"{X} 1-1 1"))
    at.reader.tick(5.0)
    assert (at.reader.next_read(5.9), at.reader.is_ahead) == ("1-3", True)
    assert (at.reader.next_read(6.1), at.reader.is_ahead) == ("1-1", False)
    at.hear(frames(3)[1], now=6.1)
    # Every other read is for what is new.
    assert (at.reader.next_read(6.2), at.reader.is_ahead) == ("1-3", True)
    at.hear(now=6.2)
    at.hear(frames(3)[2], now=6.2)
    assert at.shard.kept == [[1], [2], [3], [2], [3]]
    assert at.shard.at_once == [1, 2, 3]
    assert at.shard.moves[3] == Move(f"{X} 1-1 1", f"{X} 1-2 2", "")
    at.shard.answer()
    at.shard.answer()
    assert at.shard.shown == [1, 2, 3]
    assert at.reader.taken == 3


def test_a_store_that_went_back_is_told_the_place_again() -> None:
    at = Reading()
    at.hear_each(*frames(2))
    at.shard.answer()
    at.shard.answer(NotTaken(""))
    at.reader.tick(1.0)
    at.hear(*frames(2)[1:], now=3.0)
    assert at.shard.moves[-1] == Move("", f"{X} 1-2 2", "")


def test_frames_that_are_missing_are_a_gap_that_is_counted_once_the_openings_are_known() -> None:
    at = Reading(place=f"{X} 1-1 1")
    fifth = stored(f"{X} 1-5 9", f"{X} 1-4 8", entry(9))
    at.hear(fifth)
    assert at.reader.is_looking
    assert at.reader.next_read(0.0) is None
    at.reader.looked(f"{X} 1-1", 0.0)
    assert at.reader.next_read(0.0) == "1-1"
    at.hear(fifth)
    assert at.shard.gaps == []
    at.shard.answer()
    assert at.shard.gaps == [Gap(Place(X, 1, 1, 1), Place(X, 1, 4, 8))]
    assert (at.reader.missing, at.reader.taken) == (7, 1)


def test_the_next_opening_follows_although_the_log_lost_its_end() -> None:
    at = Reading(place=f"{X} 1-7 7")
    at.hear(stored(f"{Y} 2-1 6", f"{X} 1-5 5", entry(6)))
    at.shard.answer()
    assert at.shard.gaps == []
    assert at.shard.moves == [Move(f"{X} 1-7 7", f"{Y} 2-1 6", f"{X} 1-7")]


def test_a_reader_of_a_forgotten_opening_takes_all_frames_of_the_one_in_its_place() -> None:
    at = Reading(place=f"{Y} 2-7 12", passed=f"{X} 1-5")
    at.hear(now=9.0)
    assert at.reader.is_looking
    incarnations = f"{X} 1-1,zzzzzzzz 2-1"
    at.reader.looked(incarnations, 9.0)
    assert at.reader.next_read(9.0) == "1-5"
    first = stored("zzzzzzzz 2-1 6", f"{X} 1-5 5", entry(6))
    at.hear(first, now=9.0)
    at.reader.looked(incarnations, 9.0)
    at.hear(first, now=9.0)
    at.shard.answer()
    assert at.shard.shown == [6]
    assert at.shard.gaps == [Gap(Place(Y, 2, 7, 12), Place(X, 1, 5, 5))]
    assert at.reader.missing == 0


def test_an_answer_to_an_earlier_read_is_ignored() -> None:
    at = Reading()
    at.hear_each(*frames(2))
    at.reader.heard("0-0", frames(2), 0.0)
    assert at.shard.kept == [[1], [2]]


@pytest.mark.parametrize(
    "broken", [{b"all": b"\x09"}, {b"place": b"somewhere"}, {b"before": b"\xff"}]
)
def test_a_reader_stops_at_a_frame_that_it_cannot_read_and_says_so(broken: Fields) -> None:
    at = Reading()
    first, (id, fields) = frames(2, flags=0)
    at.hear(first, (id, {**fields, **broken}), now=1.0)
    assert at.shard.shown == [1]
    assert len(at.shard.complaints) == 1
    assert at.reader.next_read(1.5) is None
    assert at.reader.next_read(2.5) == "1-1"


def test_a_reader_does_not_read_ahead_of_the_store_without_limit() -> None:
    at = Reading()
    at.hear(*frames(64))
    assert at.reader.next_read(0.0) is None
    at.shard.answer()
    assert at.reader.next_read(0.0) == "1-64"


def at_a_store_that_does_not_answer() -> Reading:
    """A reader with 64 frames that wait for the store."""
    at = Reading()
    at.hear(*frames(64), now=1.0)
    assert at.reader.next_read(1.0) is None
    return at


def test_messages_are_shown_at_once_to_those_that_need_no_store() -> None:
    at = Reading()
    at.hear(*frames(3))
    assert (at.shard.at_once, at.shard.shown) == ([1, 2, 3], [])
    assert (at.reader.at_once.n, at.reader.shown.n) == (3, 0)


def test_frames_are_read_ahead_for_them_if_the_store_does_not_answer() -> None:
    at = at_a_store_that_does_not_answer()
    assert (at.reader.next_read(1.2), at.reader.is_ahead) == ("1-64", True)
    at.hear(*frames(70)[64:], now=1.2)
    assert at.shard.at_once == [*range(1, 71)]
    assert at.shard.kept == [[*range(1, 65)]]
    # When it answers, they are read again for all others, and nobody gets them twice.
    at.shard.answer()
    assert (at.reader.next_read(1.3), at.reader.is_ahead) == ("1-64", False)
    at.hear(*frames(70)[64:], now=1.3)
    at.shard.answer()
    assert at.shard.shown == [*range(1, 71)]
    assert at.shard.at_once == [*range(1, 71)]
    assert at.reader.taken == 70


def test_nothing_is_read_ahead_that_does_not_follow_or_is_unreadable() -> None:
    for fields in (
        stored(f"{X} 1-90 90", f"{X} 1-89 89", entry(90)),
        (b"1-65", {b"before": f"{X} 1-64 64".encode(), b"place": b"nowhere"}),
    ):
        at = at_a_store_that_does_not_answer()
        assert at.reader.next_read(1.2) == "1-64"
        at.hear(fields, now=1.2)
        assert at.shard.at_once == [*range(1, 65)]
        assert at.reader.next_read(1.3) is None


def test_what_comes_by_a_link_is_shown_before_what_is_read_ahead() -> None:
    at = at_a_store_that_does_not_answer()
    at.shard.awaited = {"7 2"}
    behind = {b"all": write([entry(65)], behind={"3": "7 2"})}
    fields = {b"before": f"{X} 1-64 64".encode(), b"place": f"{X} 1-65 65".encode(), **behind}
    at.reader.next_read(1.2)
    at.hear((b"1-65", fields), now=1.2)
    assert at.shard.at_once == [*range(1, 65)]
    at.shard.awaited.clear()
    at.hear((b"1-65", fields), now=1.3)
    assert at.shard.at_once == [*range(1, 66)]
