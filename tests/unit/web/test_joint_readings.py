"""What is stuck now in several shards is told as if it were one."""

from typing import Any

import orjson

from holdfast.web.admin.now_views import BackendNow, FirstItems, Now, ShardNow, WorkNow
from holdfast.web.joint.readings import figures, now, shards
from tests.web.fake_operations import NOW_MS, nothing_waits, some_figures


def as_json(reading: object) -> Any:
    return orjson.loads(orjson.dumps(reading))


def with_work(**work: Any) -> Now:
    nothing = {"waiting": 0, "unassigned": 0, "in_work": 0, "oldest": None, "since": None}
    queue = WorkNow(**{"channel": "/jobs", "receivers": 0, **nothing, **work})
    return nothing_waits(work_queues=FirstItems([queue], 0))


def test_a_work_queue_with_workers_in_another_shard_is_one() -> None:
    home = with_work(waiting=3, unassigned=2, oldest=7)
    other = with_work(waiting=1, in_work=4, since=9, oldest=5, receivers=2)
    joint = now({0: as_json(home), 1: as_json(other)}, {}, 10)
    assert joint["work_queues"] == {
        "items": [
            {
                **{"channel": "/jobs", "waiting": 4, "unassigned": 2, "in_work": 4},
                **{"oldest": 5, "since": 9, "receivers": 2},
            }
        ],
        "more": 0,
    }
    assert "has no worker" not in joint["sentence"]


def test_a_channel_that_all_shards_hold_back_counts_once() -> None:
    held = as_json(some_figures(channels_held_back=1, held_back=1))
    joint = figures([held, held])
    assert (joint["channels_held_back"], joint["held_back"]) == (1, 2)


def test_a_backend_that_is_broken_for_any_worker_is_told() -> None:
    def asking(shard: int, state: Any) -> Any:
        since = NOW_MS if state == "broken" else None
        seen = {"shard": shard, "state": state, "open": 1, "waiting": shard}
        item: Any = {**seen, "since": since, "failure": "", "failed": None}
        return as_json(nothing_waits(backend=FirstItems([BackendNow(**item)], 0)))

    joint = now({2: asking(2, "broken"), 1: asking(1, "answers")}, {}, 10)
    assert [(each["shard"], each["state"]) for each in joint["backend"]["items"]] == [
        (1, "answers"),
        (2, "broken"),
    ]
    assert joint["sentence"].startswith("the backend has not answered since ")


def row(shard: int, **known: Any) -> Any:
    unknown = dict.fromkeys(("since", "last_end", "pid", "sessions", "store", "links", "behind_ms"))
    seen = {"shard": shard, "state": "serving", "restarts": 0}
    return as_json(ShardNow(**{**seen, **unknown, **known}))


def of_three(number: int, **seen: Any) -> list[Any]:
    """The rows of a worker: itself in full, and what it sees of two others."""
    own = row(number, since=number, restarts=0, pid=100 + number, sessions=5, links=2)
    others = [row(shard, **seen.get(f"of_{shard}", {})) for shard in range(3) if shard != number]
    return [own, *others]


def test_a_shard_shows_itself_and_others_say_how_far_it_is_behind() -> None:
    first = of_three(0, of_1={"behind_ms": 5}, of_2={"behind_ms": 0})
    third = of_three(2, of_1={"behind_ms": 7000}, of_0={"behind_ms": 3})
    found = shards({0: first, 1: of_three(1), 2: third}, {})
    assert [(each["shard"], each["pid"], each["behind_ms"]) for each in found] == [
        (0, 100, 3),
        (1, 101, 7000),
        (2, 102, 0),
    ]


def test_a_shard_that_does_not_answer_has_a_row_of_what_others_know() -> None:
    away = {"state": "away", "since": 9, "behind_ms": 400}
    found = shards({0: of_three(0, of_1=away), 2: of_three(2)}, {1: "away"})
    assert found[1] == row(1, state="away", since=9, behind_ms=400)
    [_, silent, _] = shards({0: of_three(0), 2: of_three(2)}, {1: "silent"})
    assert silent["state"] == "silent"


def test_what_the_operator_should_know_first_is_that_a_shard_is_missing() -> None:
    away = {"state": "away", "since": 0}
    reading = nothing_waits(
        shards=FirstItems([ShardNow(**each) for each in of_three(0, of_1=away)], 0)
    )
    joint = now({0: as_json(reading)}, {1: "away", 2: "silent"}, 10)
    assert joint["sentence"].startswith("shard 1 cannot be reached since ")
    silent = now({0: as_json(reading)}, {2: "silent"}, 10)
    assert silent["sentence"] == ("shard 2 does not answer: requests for its sessions are refused")
