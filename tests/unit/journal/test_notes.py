"""The notes of moves: a copy that moves is no new one; and of hand-overs to many sessions."""

import orjson
import pytest

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Lending, Move
from holdfast.journal import notes
from holdfast.journal.columns import PublishRow, Row

AT = 1_763_600_000_000_000


def message(*, is_durable: bool = True) -> Message:
    made = Message(b"{}", id=AT * 1000, channel="/jobs", sender="client/joe/1")
    made.is_durable = is_durable
    return made


def published(copies: int, kept: int) -> PublishRow:
    return (AT * 1000, copies, kept, 0, 5, "client/joe/1", "/jobs")


@pytest.mark.parametrize(
    ("targets", "count", "is_durable", "expected"),
    [
        (["ann/1"], 1, True, []),
        (["joe/0"], 0, True, [published(-1, -1)]),
        (["joe/1", "joe/2", "joe/3"], 2, True, [published(1, 1)]),
        (["joe/1", "joe/2", "joe/3"], 3, False, [published(2, 0)]),
    ],
)
def test_a_move_is_a_publish_only_if_it_changes_the_number_of_copies(
    targets: list[str], count: int, *, is_durable: bool, expected: list[PublishRow]
) -> None:
    move = Move(message(is_durable=is_durable), "joe/9", targets, count, count)
    copies, rows = notes.moved([move], AT)
    assert copies == expected
    entered = [("entered", targets[:count])] if count else []
    assert [(kind, names) for kind, _, _, _, names, _ in rows] == [("moved", ["joe/9"]), *entered]


@pytest.mark.parametrize(
    ("how", "left", "came"),
    [
        (Lending.LENT, None, {"kept": 0}),
        (Lending.GIVEN_BACK, None, None),
        (Lending.TAKEN_BACK, {"code": "taken_back"}, None),
    ],
)
def test_both_halves_of_a_move_to_another_shard_are_in_one_note(
    how: Lending, left: object, came: object
) -> None:
    lent = message()
    copies, rows = notes.moved([Move(lent, "work:/jobs/0", ["far/1"], 1, 0, how)], AT)
    assert copies == []
    assert rows == [
        ("moved", [lent.id], None, left, ["work:/jobs/0"], [AT]),
        ("entered", [lent.id], None, came, ["far/1"], [AT]),
    ]


def test_the_shard_that_has_done_work_tells_of_it_alone() -> None:
    done = Move(message(), "work:/jobs/0", (), 0, 0, Lending.DONE)
    assert notes.moved([done], AT) == ([], [])


def test_a_note_of_an_older_server_has_the_same_moves() -> None:
    rows: list[Row] = [("moved", [AT * 1000], None, None, ["joe/9"], [AT])]
    for count, expected in ((1, []), (3, [published(2, 2)])):
        older = orjson.dumps((2, [published(count, count)], rows))
        assert notes.unpacked(older) == (expected, rows)
    alone: list[Row] = [("acked", [AT * 1000], None, None, ["joe/9"], [AT])]
    assert notes.unpacked(orjson.dumps((2, [published(1, 1)], alone))) == ([published(1, 1)], alone)
    with pytest.raises(ValueError, match="version 1"):
        notes.unpacked(orjson.dumps((1, [], rows)))


def test_a_hand_over_that_was_told_before_it_happened_is_told_once() -> None:
    def handed(ids: list[int], *keys: str) -> Row:
        return ("handed", ids, 1, None, [*keys], [AT])

    known: set[tuple[str, int]] = set()
    assert notes.handed_once(([], [handed([1], "joe/1", "ann/1")]), known)[1] == [
        handed([1], "joe/1"),
        handed([1], "ann/1"),
    ]
    replayed: Row = ("replayed", [1], None, None, ["ann/1"], [AT])
    rows = [handed([1, 2], "joe/1"), replayed, handed([1], "ann/1"), handed([1], "joe/1")]
    assert notes.handed_once(([], rows), known)[1] == [
        handed([2], "joe/1"),
        replayed,
        handed([1], "ann/1"),
    ]


def test_what_sessions_got_together_is_one_row_of_a_note() -> None:
    both, again = [(1, 1), (2, 1)], [(1, 2), (2, 2), (3, 1)]
    rows = notes.handed_again({"a/1": both, "b/1": both, "c/1": again, "d/1": both}, AT)
    assert rows == [
        ("handed", [1, 2], 1, None, ["a/1", "b/1"], [AT]),
        ("redelivered", [1, 2], 2, None, ["c/1"], [AT]),
        ("handed", [3], 1, None, ["c/1"], [AT]),
        ("handed", [1, 2], 1, None, ["d/1"], [AT]),
    ]
