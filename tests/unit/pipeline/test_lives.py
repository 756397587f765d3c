"""The lives of copies follow the order of events, however these are cut into batches."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.journal.schema import Event
from tests.unit.pipeline.events import SECOND, START_US, event, published
from tests.unit.pipeline.fates import Fates, seen, us_of
from tests.unit.pipeline.framed_events import FramedEvent, made_of, one_run, open_of
from tests.unit.pipeline.stories import acked, died, handed, start

pytestmark = pytest.mark.untraced


def replayed(after_s: float, msg: int, receiver: str, letter: int = 1) -> Event:
    more = {"letter": letter, "generation": 1, "channel": "/a"}
    return event("replayed", after_s, msg, receiver=receiver, **more)


def test_a_clock_that_was_put_back_does_not_mix_up_the_lives_of_a_copy() -> None:
    told = [
        published(1, 2),
        *(handed(1.1, 1, who) for who in ("ann/1", "bob/1")),
        *(each for who in ("ann/1", "bob/1") for each in died(9, 1, who)),
        # The clock is put back; bob's replay happens at another node, whose clock is right.
        replayed(5, 1, "ann/1"),
        handed(5.1, 1, "ann/1"),
        acked(5.2, 1, "ann/1"),
        replayed(20, 1, "bob/1")._replace(node="n2"),
        acked(20.2, 1, "bob/1")._replace(node="n2"),
    ]
    found = made_of(one_run(told)).life.to_pylist()
    assert {(row["receiver"], row["generation"], row["state"]) for row in found} == {
        ("ann/1", 0, "dead"),
        ("ann/1", 1, "acked"),
        ("bob/1", 0, "dead"),
        ("bob/1", 1, "acked"),
    }


def test_a_life_has_its_latest_error_code() -> None:
    first, last = died(2, 1, "ann/1", "user.update.error"), died(3, 1, "ann/1", "user.z")
    told = [published(1, 1), last[0], first[0], last[1]._replace(code=None)]
    [life] = made_of(one_run(told)).life.to_pylist()
    assert (life["code"], life["refused"], life["letter"]) == ("user.z", 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_carried", [False, True])
def test_a_life_has_the_wording_of_its_code_and_none_of_an_earlier_one(*, is_carried: bool) -> None:
    refused = partial(event, "refused", msg=1, receiver="ann/1", attempt=1, code="user.x")
    told = one_run([published(1, 1), refused(2, wording="no stock"), refused(3, wording="no room")])
    last = event("discarded", 4, 1, receiver="ann/1", code="session_ended")
    before = made_of(told) if is_carried else None
    [life] = made_of(told).life.to_pylist()
    assert (life["code"], life["wording"]) == ("user.x", "no room")
    [end] = one_run([last._replace(node="n1")])
    more = [end._replace(seq=9)]
    [life] = made_of(more if is_carried else [*told, *more], before).life.to_pylist()
    assert (life["state"], life["code"], life["wording"]) == ("discarded", "session_ended", None)


@pytest.mark.parametrize(("kept", "state"), [(1, "moved"), (0, "lost_with_process")])
def test_lent_work_is_in_its_queue_again_when_all_who_could_say_so_were_killed(
    kept: int, state: str
) -> None:
    nodes = (published(1, 1).node, "n2")
    told = [
        *(start(0)._replace(node=node) for node in nodes),
        published(1, 1)._replace(kept=kept),
        event("moved", 2, 1, receiver="work:/a/0"),
        event("entered", 2, 1, receiver="ann/1", kept=0),
        handed(3, 1, "ann/1")._replace(node="n2"),
        *(start(9)._replace(node=node) for node in nodes),
    ]
    framed = one_run(told)
    framed[-2:] = [each._replace(epoch="seed-2") for each in framed[-2:]]
    found = made_of(framed).life.to_pylist()
    assert {(row["receiver"], row["state"]) for row in found} == {
        ("work:/a/0", "moved"),
        ("ann/1", state),
    }


def test_a_life_with_two_ends_has_the_later_one() -> None:
    told = [published(1, 1), acked(3, 1, "ann/1"), event("expired", 2, 1, receiver="ann/1")]
    [life] = made_of(one_run(told)).life.to_pylist()
    assert life["state"] == "acked"


def test_copies_of_a_message_whose_publish_is_missing_are_lost_only_in_passing_sessions() -> None:
    told = [handed(1, 0, "ann/1"), handed(1, 0, "anonymous/-1"), event("node", 2, what="start")]
    [*before, start] = one_run(told)
    found = made_of([*before, start._replace(epoch="seed-2")]).life.to_pylist()
    assert {(row["receiver"], row["state"], row["channel"]) for row in found} == {
        ("ann/1", "open", None),
        ("anonymous/-1", "lost_with_process", None),
    }


@pytest.mark.slow
def test_a_replay_without_its_message_in_the_batch_is_lost_only_in_passing_sessions() -> None:
    told = [replayed(1, 1, "ann/1"), replayed(1, 1, "anonymous/-1"), event("node", 2, what="start")]
    [*before, start] = one_run(told)
    batch = made_of([], made_of(before))
    batch = made_of([start._replace(epoch="seed-2")], batch)
    assert [row["n"] for row in batch.lost.to_pylist()] == [1]
    assert [row["receiver"] for row in open_of(batch).to_pylist()] == ["ann/1"]


def test_a_copy_with_events_after_a_restart_was_not_lost_with_the_process() -> None:
    told = one_run(
        [published(1, 1, kept=0), handed(1, 1, "ann/1"), start(5), handed(6, 1, "ann/1", 2)]
    )
    again = [each._replace(epoch="seed-2") for each in told[2:]]
    [life] = made_of([*told[:2], *again]).life.to_pylist()
    assert life["state"] == "open"


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_a_killed_process_left_behind_happened_before_the_next_start(*, is_cut: bool) -> None:
    told = one_run(
        [
            published(1, 3, kept=0),
            acked(1.2, 1, "bob/1"),
            handed(1.1, 1, "ann/1"),
            handed(1.3, 1, "joe/1"),
            acked(1.4, 1, "joe/1"),
            start(5),
        ]
    )
    # The next process writes the notes that it finds under its own epoch, and then its start.
    told[2:] = [each._replace(epoch="seed-2") for each in told[2:]]
    first = made_of(told[:4]) if is_cut else None
    batch = made_of(told[4:] if is_cut else told, first)
    assert [row["n"] for row in batch.lost.to_pylist()] == [1]
    assert {row["receiver"]: row["state"] for row in batch.life.to_pylist()}["ann/1"] == (
        "lost_with_process"
    )
    assert len(batch.messages) == 0


@pytest.mark.slow
def test_an_event_belongs_to_the_last_of_several_open_lives() -> None:
    told = one_run([replayed(1, 1, "zoe/1"), replayed(2, 1, "zoe/1", 2), acked(3, 1, "zoe/1")])
    second = told[1]._replace(event=told[1].event._replace(generation=2))
    before = made_of([told[0], second])
    turned = before._replace(life=before.life.take([1, 0]))
    for carried in (before, turned):
        found = made_of(told[2:], carried).life.to_pylist()
        states = {(row["generation"], row["state"], *row["replay_of"]) for row in found}
        assert states == {(1, "open", 1), (2, "acked", 2)}


def test_a_replay_without_a_generation_is_the_first() -> None:
    told = [
        published(1, 1),
        *died(2, 1, "ann/1"),
        replayed(3, 1, "ann/1")._replace(generation=None),
    ]
    found = made_of(one_run(told)).life.to_pylist()
    assert {(row["generation"], row["state"], *(row["replay_of"] or [])) for row in found} == {
        (0, "dead"),
        (1, "open", 1),
    }


def test_a_replay_by_another_node_is_lost_with_the_process_of_that_node() -> None:
    again = replayed(3, 1, "ann/1")._replace(node="n2", kept=0)
    dead = [published(1, 1, kept=0), *died(2, 1, "ann/1"), again, start(5)._replace(node="n2")]
    [*told, begin] = one_run(dead)
    batch = made_of([*told, begin._replace(epoch="seed-2")])
    assert [row["state"] for row in batch.life.to_pylist() if row["generation"]] == [
        "lost_with_process"
    ]
    [lost] = batch.lost.to_pylist()
    assert (lost["n"], lost["found_ts"].timestamp()) == (1, START_US // SECOND + 5)
    assert len(batch.messages) == 0


def of_town(*told: Event) -> list[Event]:
    """The same events in a deployment, with whose name ids begin."""
    return [each._replace(origin=each.origin and "town") for each in told]


def at(shard: int, *told: Event) -> list[Event]:
    return [each._replace(node=f"n1/{shard}" if shard else "n1") for each in told]


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_message_of_a_named_deployment_is_lost_with_the_process_that_had_it(
    *, is_cut: bool
) -> None:
    told = one_run(of_town(published(1, 2, kept=0), handed(1.1, 1, "ann/1"), start(5)))
    told[2] = told[2]._replace(epoch="seed-2")
    first = made_of(told[:2]) if is_cut else None
    batch = made_of(told[2:] if is_cut else told, first)
    assert [row["n"] for row in batch.lost.to_pylist()] == [2]
    assert [row["state"] for row in batch.life.to_pylist()] == ["lost_with_process"]
    assert len(batch.messages) == 0


@pytest.mark.parametrize("is_cut", [False, True])
def test_each_shard_loses_its_own_copies_of_a_message(*, is_cut: bool) -> None:
    first = at(0, published(1, 2, kept=0), handed(1.1, 1, "ann/1"), acked(1.2, 1, "ann/1"))
    second = at(1, published(1, 3, kept=0, size=0), handed(1.3, 1, "bob/1"))
    begin = at(1, start(5))
    told = one_run(of_town(*first, *second, *begin))
    told[-1] = told[-1]._replace(epoch="seed-2")
    before = made_of(told[:-1]) if is_cut else None
    batch = made_of(told[-1:] if is_cut else told, before)
    assert [row["n"] for row in batch.lost.to_pylist()] == [3]
    left = {row["node"]: row for row in batch.messages.to_pylist()}
    counts = {node: (row["copies"], row["ended"], row["lost"]) for node, row in left.items()}
    assert counts == {"n1": (2, 1, 0), "n1/1": (3, 0, 3)}
    ended = {row["receiver"]: row["state"] for row in batch.life.to_pylist()}
    assert ended["bob/1"] == "lost_with_process"


def test_a_copy_that_was_given_to_another_shard_ends_there() -> None:
    before = at(1, published(1, 1, kept=1), handed(1.1, 1, "ann/1"))
    told = one_run(of_town(*before, *at(2, acked(9, 1, "ann/1"))))
    batch = made_of(told[2:], made_of(told[:2]))
    [life] = batch.life.to_pylist()
    assert (life["state"], life["channel"], len(batch.messages)) == ("acked", "/a", 0)


def test_a_batch_without_events_makes_no_lives() -> None:
    batch = made_of([])
    assert (len(batch.life), len(batch.messages), len(batch.lost)) == (0, 0, 0)


@pytest.mark.slow
@given(st.lists(st.integers(0, 2**20), min_size=10), st.lists(st.integers(0, 60), max_size=3))
def test_lives_agree_with_those_of_a_naive_model(dice: list[int], cuts: list[int]) -> None:
    fates = Fates()
    for each in dice:
        fates.go_on(each)
    batch, life, lost = made_of([]), list[dict[str, Any]](), Counter[tuple[str, int | None]]()
    for part in _parts(fates.events, cuts):
        batch = made_of(part, batch)
        life += [row for row in batch.life.to_pylist() if row["state"] != "open"]
        for row in batch.lost.to_pylist():
            lost[row["channel"], us_of(row["found_ts"])] += row["n"]
    life += [row for row in batch.life.to_pylist() if row["state"] == "open"]
    assert sorted(map(seen, life), key=repr) == sorted(fates.lives(), key=repr)
    assert lost == fates.lost
    assert sorted(batch.messages["msg"].to_pylist()) == fates.unsettled()


def _parts(told: Sequence[FramedEvent], cuts: Sequence[int]) -> list[Sequence[FramedEvent]]:
    return [told[first:end] for first, end in pairwise([0, *sorted(cuts), len(told)])]
