"""What comes through a hold, and holds that end too early or too late."""

from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.holds import ENDLESS, Holds, Limit
from tests.simulation.judges.scenes import facts_at

CHANNEL = "/tasks/a"


class Scene:
    """A receiver or a channel that is held back at 10."""

    def __init__(self, what: str = "joe", limit: Limit = ENDLESS) -> None:
        self.now = 10.0
        self.have_one_clock = True
        self.excuses = Excuses()
        self.what = what
        self.holds = Holds(facts_at(lambda: self.now))
        self.holds.asks(what, limit)
        self.holds.held(what, limit)

    def gets(self, at: float) -> None:
        self.now = at
        self.holds.taken("joe", CHANNEL, "m")

    def is_seen(self, at: float, *, is_held: bool) -> None:
        self.now = at
        self.holds.looked(self.what, at, is_held=is_held)

    def is_released(self, at: float) -> None:
        self.now = at
        self.holds.releases(self.what)
        self.holds.let_go(self.what)

    def wrong(self) -> list[str]:
        return [*self.holds.violations(self.excuses, have_one_clock=self.have_one_clock)]


def test_nothing_comes_to_who_is_held_back() -> None:
    scene = Scene()
    scene.gets(10.5)
    assert scene.wrong() == []
    scene.gets(15.0)
    said = "operations: joe got m, although joe is held back since 10.000 at 15.000"
    assert scene.wrong() == [said]
    # Only a store may lose a hold.
    scene.excuses.add("kill_server", 12.0, 5.0)
    assert scene.wrong() == [said]
    scene.excuses.add("end_store", 12.0, 5.0)
    assert scene.wrong() == []


def test_nothing_comes_of_a_channel_that_is_held_back() -> None:
    scene = Scene(CHANNEL)
    scene.gets(15.0)
    assert len(scene.wrong()) == 1


def test_everything_comes_behind_a_release() -> None:
    scene = Scene()
    assert [*scene.holds.unfinished()]
    scene.is_released(12.0)
    scene.gets(15.0)
    assert scene.wrong() == [*scene.holds.unfinished()] == []


def test_a_release_stays_unless_a_store_that_fails_loses_it() -> None:
    for fault, at, count in (
        *(("kill_server", 12.0, 1), ("end_store", 12.0, 0)),
        *(("end_store", 1.0, 1), ("end_store", 30.0, 1)),
    ):
        scene = Scene()
        scene.is_released(12.0)
        scene.is_seen(40.0, is_held=True)
        assert [*scene.holds.unfinished()] == ["operations: joe is still held back"]
        scene.excuses.add(fault, at, 1.0)
        said = "operations: joe is held back again, although it was released at 24.000"
        assert scene.wrong() == [said] * count
        scene.is_released(41.0)
        assert [*scene.holds.unfinished()] == []


def test_a_hold_with_a_limit_holds_until_then_and_ends_by_itself() -> None:
    scene = Scene(limit=Limit(20.0, 25.0))
    assert [*scene.holds.unfinished()] == []
    scene.is_seen(15.0, is_held=True)
    scene.gets(21.0)
    scene.is_seen(26.0, is_held=False)
    assert scene.wrong() == []


def test_a_hold_that_ends_too_early_or_too_late_is_reported() -> None:
    early, late = Scene(limit=Limit(20.0, 25.0)), Scene(limit=Limit(20.0, 25.0))
    early.gets(15.0)
    assert len(early.wrong()) == 1
    early.is_seen(16.0, is_held=False)
    assert len(early.wrong()) == 2
    late.is_seen(26.0, is_held=True)
    assert late.wrong() == [
        "operations: joe is still held back, although that ended at 25.000 at 26.000"
    ]


def test_what_is_held_back_once_more_is_so_from_then_on() -> None:
    scene = Scene(limit=Limit(20.0, 25.0))
    scene.now = 30.0
    scene.holds.asks("joe", ENDLESS)
    scene.holds.held("joe", ENDLESS)
    scene.gets(30.5)
    assert scene.wrong() == []
    scene.gets(32.0)
    assert len(scene.wrong()) == 1


def test_only_what_goes_wrong_just_then_excuses_a_hold_that_does_not_end() -> None:
    for over_at, count in ((26.0, 1), (38.0, 0)):
        scene = Scene(limit=Limit(20.0, 25.0))
        scene.is_seen(40.0, is_held=True)
        scene.excuses.add("freeze_server", over_at - 1.0, 1.0)
        assert len(scene.wrong()) == count


def test_servers_with_other_clocks_end_a_hold_with_a_limit_at_other_times() -> None:
    scene = Scene(limit=Limit(20.0, 25.0))
    scene.is_seen(26.0, is_held=True)
    scene.have_one_clock = False
    assert scene.wrong() == []
    endless = Scene()
    endless.have_one_clock = False
    endless.is_seen(26.0, is_held=False)
    assert len(endless.wrong()) == 1


def test_a_hold_with_a_limit_is_refused_only_where_clocks_differ() -> None:
    scene = Scene(limit=Limit(20.0, 25.0))
    scene.holds.refused("joe", "until: this time is in the past")
    assert len(scene.wrong()) == 1
    scene.have_one_clock = False
    assert scene.wrong() == []
