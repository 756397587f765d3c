"""Which messages are lost or late."""

import pytest

from tests.simulation.judges.deliveries import Deliveries
from tests.simulation.judges.excuses import Excuses
from tests.simulation.oracle import Publish


class Scene:
    """A session without a name, and a passing message that is accepted at 20."""

    def __init__(self, session: str = "joe#1") -> None:
        self.now = 10.0
        self.session = session
        self.excuses = Excuses()
        self.deliveries = Deliveries(lambda: self.now)
        self.deliveries.subscribed(session, "/a")
        self.publish = Publish("ann", 1, "/a", 19.9, False, id="7", accepted_at=20.0)

    def comes(self, at: float, *, waited_since: float = 15.0) -> None:
        self.now = waited_since
        self.deliveries.waits(self.session)
        self.now = at
        self.deliveries.received(self.session, "key")

    def hears(self, at: float) -> None:
        self.now = at
        self.deliveries.hears(self.session)

    def faults(self, named: frozenset[str] = frozenset()) -> list[str]:
        return self.deliveries.violations({"key": self.publish}, named, self.excuses)


def test_a_session_that_lives_on_without_an_accepted_message_lacks_it() -> None:
    scene = Scene()
    assert scene.faults() == []
    scene.hears(25.0)
    assert scene.faults() == []
    scene.hears(30.0)
    assert scene.faults() == ["lost: joe#1 lacks key, accepted at 20.000"]


@pytest.mark.parametrize(("killed_at", "is_lost"), [(28.0, False), (31.0, True)])
def test_what_waits_for_who_comes_seldom_may_be_lost_with_its_server(
    *, killed_at: float, is_lost: bool
) -> None:
    scene = Scene()
    for at in (25.0, 30.0, 35.0):
        scene.hears(at)
    scene.excuses.add("kill_server", killed_at, 1.0)
    assert bool(scene.faults()) is is_lost


def test_the_oracle_judges_durable_messages_for_sessions_with_names() -> None:
    scene = Scene("joe")
    scene.hears(30.0)
    scene.publish.is_durable = True
    assert scene.faults(frozenset(("joe",))) == []
    scene.publish.is_durable = False
    assert len(scene.faults(frozenset(("joe",)))) == 1


@pytest.mark.parametrize("fault", ["restart", "ask_for_restart", "restart_with_bad_code"])
def test_a_restart_excuses_no_loss_and_a_killed_server_does(fault: str) -> None:
    scene = Scene()
    scene.hears(30.0)
    scene.excuses.add(fault, 19.0, 1.0)
    assert len(scene.faults()) == 1
    scene.excuses.add("kill_server", 19.0, 1.0)
    assert scene.faults() == []
    assert scene.excuses.used == {"message lost: kill_server": 1}


@pytest.mark.parametrize("fault", ["freeze_store", "fill_disk"])
def test_a_store_that_is_away_costs_no_message_that_needs_none_if_it_is_the_server_s_own(
    fault: str,
) -> None:
    scene = Scene()
    scene.hears(30.0)
    scene.excuses.add(fault, 19.0, 1.0)
    assert scene.faults() == []
    scene.deliveries.are_embedded = True
    assert len(scene.faults()) == 1
    scene.publish.is_durable = True
    assert scene.faults() == []


def test_a_message_comes_soon_to_who_waits_for_it() -> None:
    scene = Scene()
    scene.comes(20.5)
    assert scene.faults() == []
    scene = Scene()
    scene.comes(22.0)
    assert scene.faults() == ["late: key came to joe#1 at 22.000, 2.000 s late"]


def test_a_message_is_not_late_for_who_comes_later() -> None:
    scene = Scene()
    scene.comes(24.0, waited_since=23.5)
    assert scene.faults() == []
