"""What the oracle takes for a broken promise, and what not."""

from math import inf
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from tests.simulation.oracle import CLIENTS, Oracle
from tests.simulation.process import Life
from tests.simulation.store_site import Tail

FORMER: Any = Mock(ended_at=inf)
LATER: Any = Mock(ended_at=inf)
KILLED: Any = Mock(ended_at=1.8)


class Scene:
    """A receiver, and one message that comes to it."""

    def __init__(self) -> None:
        self.now: float = 1.0
        self.home: Any = FORMER
        self.oracle = Oracle(lambda: self.now, ["joe"])
        self.oracle.home_of = lambda _: self.home
        self.oracle.publishes("a", "ann", 1, "/a", is_durable=True, is_repeated=True)
        self.oracle.accepted("a", "7")

    def come(self) -> None:
        self.oracle.received("joe", "a", "7", is_named=True)

    def settle(self) -> None:
        self.oracle.settled("joe", ["7"])

    def lacks(self) -> list[str]:
        return [each for each in self.oracle.violations(0.0) if each.startswith("S3")]

    def disorder(self) -> list[str]:
        return [each for each in self.oracle.violations(0.0) if each.startswith("S5")]

    def faults(self) -> list[str]:
        return [each for each in self.oracle.violations(0.0) if each.startswith("S4")]


@pytest.mark.parametrize(("handed_s", "may_come"), [(-0.001, False), (0.003, True), (0.2, False)])
def test_what_came_in_the_instant_of_a_cut_may_come_again_from_the_next_server(
    handed_s: float, may_come: bool
) -> None:
    scene = Scene()
    scene.oracle.cut_off.append((FORMER, scene.now - handed_s))
    scene.come()
    scene.now, scene.home = 4.0, LATER
    scene.settle()
    scene.come()
    assert scene.faults() == ([] if may_come else ["S4: joe got a again"])
    # That server knows it now.
    scene.come()
    assert scene.faults()[-1:] == ["S4: joe got a again"]


def test_what_came_again_after_the_instant_of_a_cut_comes_once_more_after_a_crash() -> None:
    scene = Scene()
    scene.oracle.cut_off.append((FORMER, scene.now))
    scene.come()
    scene.now, scene.home = 4.0, LATER
    # It answered behind the acknowledgement, and yet did not know what that was for.
    scene.settle()
    scene.now = 4.1
    scene.come()
    scene.oracle.forgets("joe", but=())
    scene.now = 4.2
    scene.come()
    assert not scene.faults()
    scene.settle()
    scene.oracle.forgets("joe", but=())
    scene.come()
    assert scene.faults() == ["S4: joe got a again"]


def test_a_server_that_was_cut_off_does_not_repeat_what_it_has_handed_out_itself() -> None:
    scene = Scene()
    scene.oracle.cut_off.append((FORMER, scene.now))
    scene.come()
    scene.settle()
    scene.come()
    assert scene.faults() == ["S4: joe got a again"]


def test_another_server_that_is_cut_off_excuses_nothing() -> None:
    scene = Scene()
    scene.oracle.cut_off.append((LATER, scene.now))
    scene.come()
    scene.home = LATER
    scene.settle()
    scene.come()
    assert scene.faults() == ["S4: joe got a again"]


@pytest.mark.parametrize(("lost_since", "may_come"), [(0.9, True), (1.2, True), (2.6, False)])
def test_what_was_settled_while_a_store_lost_that_may_come_again_from_the_next_server(
    lost_since: float, may_come: bool
) -> None:
    scene = Scene()
    scene.oracle.lost_tails = lambda: [Tail(lost_since, 3.0, None, 3.5)]
    scene.come()
    scene.now = 1.5
    scene.settle()
    scene.now, scene.home = 2.5, LATER
    # It answers behind an acknowledgement of what it does not know.
    scene.settle()
    scene.come()
    assert scene.faults() == ([] if may_come else ["S4: joe got a again"])


def test_what_a_receiver_has_not_acknowledged_when_it_crashes_must_come_again() -> None:
    scene = Scene()
    scene.home, scene.now = None, 1.2
    scene.oracle.subscribed("joe", "/a")
    scene.now = 1.5
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.oracle.received("joe", "b", "8", is_named=True)
    scene.now = 2.0
    scene.oracle.forgets("joe", but=["8"])
    assert not scene.lacks()
    scene.oracle.forgets("joe", but=())
    assert scene.lacks() == ["S3: joe lacks b, accepted as 8"]
    scene.oracle.received("joe", "b", "8", is_named=True)
    scene.oracle.settled("joe", ["8"])
    scene.oracle.forgets("joe", but=())
    assert not scene.lacks()


def test_what_a_crash_undid_is_not_behind_what_came_with_an_earlier_batch() -> None:
    scene = Scene()
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.come()
    scene.oracle.received("joe", "b", "8", is_named=True)
    # The acknowledgement is lost, and the next batch has room for the first alone.
    scene.come()
    scene.oracle.forgets("joe", but=())
    scene.come()
    scene.oracle.received("joe", "b", "8", is_named=True)
    assert not scene.disorder()


@pytest.mark.parametrize("server", [KILLED, FORMER])
def test_what_comes_again_because_its_server_was_killed_was_in_its_order_the_first_time(
    server: Any,
) -> None:
    scene = Scene()
    scene.home = server
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.come()
    scene.now = 1.5
    scene.settle()
    scene.oracle.received("joe", "b", "8", is_named=True)
    # Perhaps the server is killed before it tells the store of the first one.
    scene.now, scene.home = 2.0, LATER
    scene.oracle.settled("joe", ["8"])
    scene.now = 2.5
    scene.come()
    scene.oracle.forgets("joe", but=())
    scene.come()
    assert scene.disorder() == ([] if server is KILLED else ["S5: joe got a behind a later one"])


def test_everybody_is_heard_and_hears_when_all_is_well_again() -> None:
    scene = Scene()
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.now = 9.0
    scene.oracle.hears("joe")
    assert scene.oracle.violations(8.0) == ["liveness: b is not accepted"]
    scene.oracle.accepted("b", "8")
    assert scene.oracle.violations(8.0) == []
    assert scene.oracle.violations(10.0) == ["liveness: joe hears nothing"]


def test_a_message_is_one_message_whoever_gets_it() -> None:
    scene = Scene()
    scene.oracle.received("joe", "a", "7", is_named=True)
    scene.oracle.received("ann", "a", "8", is_named=True)
    assert scene.faults() == ["S4: a is several messages: 7, 8"]


def test_what_comes_behind_a_later_one_is_out_of_order() -> None:
    scene = Scene()
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.oracle.received("joe", "b", "8", is_named=True)
    scene.come()
    assert scene.disorder() == ["S5: joe got a behind a later one"]


@pytest.mark.parametrize(
    ("ended_at", "shard", "has_one_copy", "may_be_gone"),
    [
        # Its server ended before it could tell the store again.
        (1.5, 7, True, True),
        (1.5, None, True, True),
        # It lived, so it knew the message; it had told it long ago; it ended before.
        (None, 7, True, False),
        (60.0, 7, True, False),
        (0.2, 7, True, False),
        # Another store lost something, or a replica had it.
        (1.5, 2, True, False),
        (1.5, 7, False, False),
    ],
)
def test_an_accepted_message_is_gone_only_with_its_store_and_its_server(
    *, ended_at: float | None, shard: int | None, has_one_copy: bool, may_be_gone: bool
) -> None:
    scene = Scene()
    scene.home = None
    scene.oracle.subscribed("joe", "/a")
    scene.come()
    scene.now = 1.1
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "1-1000007")
    scene.oracle.has_one_copy = has_one_copy
    scene.oracle.lost_tails = lambda: [Tail(1.05, 1.2, shard, 2.0)]
    ends = {} if ended_at is None else {7: [ended_at]}
    scene.oracle.ends_of = lambda shard: ends.get(shard, [])
    assert bool(scene.lacks()) is not may_be_gone


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("is_answered", [True, False])
def test_what_comes_behind_what_a_store_may_have_forgotten_as_settled_is_in_order(
    *, is_lost: bool, is_answered: bool
) -> None:
    scene = Scene()
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    for key, id in (("a", "7"), ("b", "8")):
        scene.oracle.received("joe", key, id, is_named=True)
    # The acknowledgement of the second one may have no answer.
    answered, doubted = (["7", "8"], []) if is_answered else (["7"], ["8"])
    scene.oracle.settled("joe", answered)
    scene.now, scene.home = 4.0, LATER
    if is_lost:
        scene.oracle.lost_tails = lambda: [Tail(0.5, 1.5, None, 2.0)]
    scene.come()
    scene.oracle.forgets("joe", but=doubted)
    scene.come()
    assert scene.disorder() == ([] if is_lost else ["S5: joe got a behind a later one"])


class _Peer(NamedTuple):
    name: tuple[str, int]


class _End(NamedTuple):
    peer: _Peer
    label: str = "end"


class _Server:
    """A server that may end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.life = Life.RUNNING


@pytest.mark.parametrize(
    ("lost_since", "has_ended", "may_speak"),
    [(3.9, True, True), (4.1, True, False), (3.9, False, False)],
)
def test_a_server_goes_on_if_its_store_has_lost_that_another_one_took_over(
    *, lost_since: float, has_ended: bool, may_speak: bool
) -> None:
    scene = Scene()
    end: Any = _End(_Peer((CLIENTS, 1)))
    former, later = servers = _Server(1), _Server(2)
    scene.oracle.leases.are_needed = False
    scene.oracle.lost_tails = lambda: [Tail(lost_since, 5.0, None, 5.5)]
    for scene.now, server in zip((1.0, 4.0, 6.0), (*servers, former), strict=True):
        if scene.now > 5.0 and has_ended:
            later.life = Life.ENDED
        speaking: Any = server
        scene.oracle.spoke(speaking, end, b'{"successful":true}')
    found = [each for each in scene.oracle.violations(0.0) if each.startswith("S2")]
    assert (not found) is may_speak
