"""What is stuck now in several shards is told as if it were one."""

from typing import Any

import orjson

from holdfast.web.admin.now_views import FirstItems, Now, WorkNow
from holdfast.web.joint.readings import figures, now
from tests.web.fake_operations import nothing_waits, some_figures


def as_json(reading: object) -> Any:
    return orjson.loads(orjson.dumps(reading))


def with_work(**work: Any) -> Now:
    nothing = {"waiting": 0, "unassigned": 0, "in_work": 0, "oldest": None, "since": None}
    queue = WorkNow(**{"channel": "/jobs", "receivers": 0, **nothing, **work})
    return nothing_waits(work_queues=FirstItems([queue], 0))


def test_a_work_queue_with_workers_in_another_shard_is_one() -> None:
    home = with_work(waiting=3, unassigned=2, oldest=7)
    other = with_work(waiting=1, in_work=4, since=9, oldest=5, receivers=2)
    joint = now({0: as_json(home), 1: as_json(other)}, 10)
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
