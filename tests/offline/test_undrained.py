"""What shards have for each other before a division: what would be lost must be taken."""

import pytest

from holdfast.bayeux.far_work.work_calls import BACK, DONE, END, HAS, TAKES, Told
from holdfast.cluster.frames import ANSWER, CALL, DURABLE, MESSAGE, LogEntry
from holdfast.delivery.basics.json_text import to_json
from holdfast.offline.undrained import must_be_taken


def entry(kind: int, channel: str, *, flags: int = 0, data: bytes = b"{}") -> LogEntry:
    return LogEntry(kind, channel, 1, "ann", flags, data)


def told(*rows: list[object]) -> LogEntry:
    return entry(CALL, "work told", data=to_json(Told(7, 0, rows)._asdict()))


@pytest.mark.parametrize(
    "found",
    [
        entry(MESSAGE, "/news", flags=DURABLE),
        entry(CALL, "topic erase"),
        entry(CALL, "work lent"),
        told([TAKES, "ann/1"], [DONE, 1, "/jobs/a", 3], [END]),
        told([BACK, 1, "/jobs/a", 3]),
    ],
)
def test_stored_messages_calls_and_outcomes_of_work_must_be_taken(found: LogEntry) -> None:
    assert must_be_taken(found)


@pytest.mark.parametrize(
    "found",
    [
        entry(MESSAGE, "/news"),
        entry(ANSWER, "work lent"),
        entry(CALL, "topics told"),
        told([TAKES, "ann/1"], [HAS, 1, "/jobs/a", 3, "ann/1"], [END]),
    ],
)
def test_what_is_lost_anyway_or_told_again_by_each_start_need_not_be_taken(found: LogEntry) -> None:
    assert not must_be_taken(found)
