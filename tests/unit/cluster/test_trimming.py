"""Which frames of a log stay, and for whom."""

from collections.abc import Iterable

from holdfast.cluster.places import NOWHERE, Place
from holdfast.cluster.trimming import Trim, Trimming

NONCE = "xxxxxxxx"


class Log:
    """A log, mostly with frames of one entry each, read by shards 1 and 2."""

    def __init__(self, **limits: float) -> None:
        self.trimming = Trimming([1, 2], **limits)  # type: ignore[arg-type]
        self.trimming.begin(NONCE, 7, NOWHERE, [], {}, 0.0)
        self.n = self.total = 0
        self.now = 0.0
        # Where the shards are, by their numbers.
        self.places: dict[int, Place] = {}

    def append(
        self, needed_by: Iterable[int] = (1, 2), size: int = 5000, entries: int = 1
    ) -> Place:
        self.n += 1
        self.total += entries
        self.trimming.appended(self.n, entries, size, needed_by, self.now)
        return Place(NONCE, 7, self.n, self.total)

    def wait(self, seconds: float, *, silent: int = 0) -> list[Trim]:
        """Let time pass, with a tick in each second; all shards but one say where they are."""
        trims = []
        for _ in range(int(seconds)):
            self.now += 1.0
            for shard, place in self.places.items():
                if shard != silent:
                    self.trimming.saw(shard, place, self.now)
            trim = self.trimming.tick(self.now)
            if trim is not None:
                trims.append(trim)
        return trims

    def see(self, place: Place, *shards: int) -> None:
        for shard in shards or (1, 2):
            self.places[shard] = place
            self.trimming.saw(shard, place, self.now)


def test_frames_stay_for_ten_seconds_after_all_shards_have_taken_them() -> None:
    log = Log()
    places = [log.append() for _ in range(3)]
    log.see(places[1])
    assert log.wait(10) == []
    assert log.wait(2) == [Trim("7-3", [], {})]
    assert log.wait(20) == []
    log.see(places[2])
    assert log.wait(12) == [Trim("7-4", [], {})]


def test_frames_stay_for_the_slowest_shard_as_it_was_ten_seconds_ago() -> None:
    log = Log()
    places = [log.append() for _ in range(4)]
    log.see(places[3], 1)
    log.see(places[0], 2)
    assert log.wait(12) == [Trim("7-2", [], {})]
    log.see(places[2], 2)
    assert log.wait(9) == []
    assert log.wait(3) == [Trim("7-4", [], {})]


def test_frames_stay_for_ten_seconds_after_a_shard_has_taken_them_again() -> None:
    log = Log()
    places = [log.append() for _ in range(3)]
    log.see(places[2])
    log.wait(5)
    # The store of the shard goes back.
    log.see(places[0], 2)
    log.see(places[2], 2)
    assert log.wait(9) == []
    assert log.wait(3) == [Trim("7-4", [], {})]


def test_frames_stay_if_a_shard_says_nothing_after_it_has_taken_them() -> None:
    log = Log()
    places = [log.append() for _ in range(5)]
    log.see(places[1])
    log.wait(5)
    log.see(places[3])
    # Its process ends, and its store goes on without the last moment.
    assert log.wait(60, silent=2) == []
    log.see(places[1], 2)
    log.see(places[3], 2)
    assert log.wait(9) == []
    assert log.wait(3) == [Trim("7-5", [], {})]


def test_a_shard_that_is_behind_keeps_only_what_it_needs_and_the_newest_frame() -> None:
    log = Log()
    places = [log.append(needed_by=[2] if n in (1, 4) else [1]) for n in range(7)]
    log.see(places[6], 1)
    links = {"7-2": str(NOWHERE), "7-5": str(places[1]), "7-7": str(places[4])}
    assert log.wait(12) == [Trim("7-2", ["7-1", "7-3", "7-4", "7-6"], links)]


def test_links_lead_over_all_frames_that_were_removed_and_end_with_their_frames() -> None:
    log = Log()
    first = log.append(needed_by=[2])
    log.append(needed_by=[1])
    last = log.append(needed_by=[1])
    log.see(last, 1)
    assert log.wait(12) == [Trim("7-1", ["7-2"], {"7-3": str(first)})]
    last = log.append(needed_by=[1])
    log.see(last, 1)
    assert log.wait(12) == [Trim("7-1", ["7-3"], {"7-4": str(first), "7-3": ""})]
    log.see(last, 2)
    assert log.wait(12) == [Trim("7-5", [], {"7-4": ""})]


def test_publishes_are_refused_that_a_shard_needs_which_has_left_more_than_64_mib() -> None:
    log = Log()
    for _ in range(64):
        log.append(needed_by=[2], size=1024 * 1024)
    log.see(log.append(needed_by=[2]), 1)
    log.wait(1)
    assert log.trimming.needed_bytes[2] == 64 * 1024 * 1024 + 5000
    assert log.trimming.overflowing == {2}
    assert log.trimming.refuses([1, 2])
    assert not log.trimming.refuses([1])
    log.see(Place(NONCE, 7, 5, 5), 2)
    log.wait(1)
    assert not log.trimming.refuses([2])


def test_publishes_are_refused_that_a_shard_needs_which_has_left_something_for_a_minute() -> None:
    log = Log()
    log.append(needed_by=[2])
    for _ in range(3):
        log.wait(20)
        log.see(log.append(needed_by=[1]), 1)
    assert not log.trimming.refuses([2])
    log.wait(1)
    assert log.trimming.refuses([2])
    # What it does not need is no reason.
    log.see(Place(NONCE, 7, 1, 1), 2)
    log.wait(100)
    assert not log.trimming.refuses([2])


def test_small_frames_count_as_what_they_may_take() -> None:
    log = Log(most_bytes=4096 * 3)
    for _ in range(4):
        log.append(size=10)
    log.wait(1)
    assert log.trimming.overflowing == {1, 2}


def test_frames_of_an_earlier_process_are_needed_by_all() -> None:
    log = Log()
    places = [Place("wwwwwwww", 6, n, n) for n in range(4)]
    frames = [(places[n], places[n + 1], 5000) for n in range(3)]
    log.trimming.begin(NONCE, 7, places[3], frames, {"6-2": "x"}, 0.0)
    log.append()
    log.see(Place(NONCE, 7, 1, 4), 1)
    assert log.wait(12) == []
    log.see(places[3], 2)
    assert log.wait(12) == [Trim("7-1", [], {"6-2": ""})]


def test_a_shard_at_a_frame_that_the_log_has_lost_has_taken_what_is_before_it() -> None:
    log = Log()
    old = [Place("wwwwwwww", 6, n, n) for n in range(1, 4)]
    frames = [(NOWHERE, old[0], 10), (old[0], old[1], 10)]
    log.trimming.begin(NONCE, 7, old[1], frames, {}, 0.0)
    log.append()
    log.see(old[2])
    assert log.wait(12) == [Trim("7-1", [], {})]


def test_it_is_known_for_how_long_a_shard_has_been_behind() -> None:
    log = Log()
    first = log.append()
    log.wait(3)
    log.append()
    log.wait(2)
    log.see(first, 1)
    log.wait(1)
    assert log.trimming.behind_s == {1: 3.0, 2: 6.0}


def test_frames_without_entries_do_not_wait() -> None:
    log = Log()
    log.see(log.append())
    log.append(needed_by=(), entries=0)
    log.wait(30)
    assert log.trimming.behind_s == {1: 0.0, 2: 0.0}
    log.append()
    log.append(needed_by=(), entries=0)
    log.wait(3)
    assert log.trimming.behind_s == {1: 3.0, 2: 3.0}


def test_a_frame_does_not_wait_for_entries_that_were_removed_before_it() -> None:
    log = Log()
    last = log.append(needed_by=())
    log.append(needed_by=(), entries=0)
    # Both have taken everything, and say nothing more.
    for shard in (1, 2):
        log.trimming.saw(shard, last, log.now)
    [trim] = log.wait(30)
    assert trim.removed == ["7-1"]
    assert log.trimming.behind_s == {1: 0.0, 2: 0.0}


def test_frames_that_nobody_needs_stay_for_ten_seconds_after_the_store_was_away() -> None:
    log = Log()
    log.wait(20)
    for _ in range(3):
        log.append(needed_by=())
    # Nobody could read the log meanwhile.
    log.now += 17.0
    assert log.wait(10) == []
    [trim] = log.wait(2)
    assert trim.removed == ["7-1", "7-2"]
