"""Each report, on few events, so that anyone can count the numbers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.pipeline.lake import OPEN, Lake
from holdfast.pipeline.messages import LOST
from holdfast.pipeline.on_duckdb import of_lake, opened
from holdfast.pipeline.replay import CONDITIONS, PLAN, SUMMARY, parts, plan
from holdfast.pipeline.reports.catalogue import REPORTS, result_of
from holdfast.pipeline.reports.columns import COLUMNS
from holdfast.pipeline.reports.dead import DEAD, POISON
from holdfast.pipeline.reports.flow import BACKLOG, FUNNEL, PUBLISHERS, THROUGHPUT
from holdfast.pipeline.reports.latency import BY_HOUR, LATENCY
from holdfast.pipeline.reports.receivers import (
    FLAPPING,
    HOLDBACK_ADVICE,
    REDELIVERY,
    SLOW_RECEIVERS,
)
from holdfast.pipeline.reports.tables import Answer, Tables
from holdfast.pipeline.reports.trends import DAYS
from holdfast.pipeline.results import find_out
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.store.letters.filter import LetterFilter, letter_id
from tests.pipeline.stored import LIFE, store, store_events
from tests.pipeline.tales import more, refused, work
from tests.unit.pipeline.events import START_US, event, published
from tests.unit.pipeline.framed_events import made_of, one_run
from tests.unit.pipeline.stories import acked, died, handed, the_story

pytestmark = pytest.mark.untraced

Shelf = Callable[..., Tables]
LOST_ONE = pa.Table.from_pylist([{"origin": "n1", "channel": "/poison", "n": 1}], LOST)


def the_lake(place: Path) -> Lake:
    return store_events(place, one_run([*the_story(), *more()]), LOST_ONE)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """What opens the tables of a lake, and closes them after the test."""
    with ExitStack() as opened:

        def open_tables(lake: Lake, scope: Scope = EVERYTHING) -> Tables:
            return opened.enter_context(of_lake(lake, scope))

        yield open_tables


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return the_lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def tables(lake: Lake) -> Iterator[Tables]:
    """The tables that all tests share and none changes."""
    with of_lake(lake) as tables:
        yield tables


def rows(answer: Answer, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in answer.by_name()]


def test_the_funnel_accounts_for_every_copy(tables: Tables) -> None:
    counts = ("published", "copies", "replayed", "handed", "acked", "dead", "lost", "open")
    assert rows(tables.ask(FUNNEL), "channel", *counts) == [
        ("/chat", 5, 10, 0, 10, 9, 1, 0, 0),
        ("/orders", 5, 10, 1, 11, 9, 1, 0, 1),
        ("/poison", 1, 4, 0, 3, 0, 3, 1, 0),
        ("/slow", 1, 1, 0, 1, 1, 0, 0, 0),
    ]


def test_a_copy_of_a_work_queue_that_moves_to_other_workers_is_one_copy(
    tmp_path: Path, shelf: Shelf
) -> None:
    tables = shelf(store_events(tmp_path, one_run(work(100, dead=10))))
    [funnel] = tables.ask(FUNNEL).by_name()
    # Every third returns, and each dead letter returns from both.
    moves = 30 + 2 * 10
    assert funnel == {
        "channel": "/jobs",
        "published": 100,
        "copies": 100,
        "replayed": 0,
        "moves": moves,
        "handed": 100,
        "acked": 90,
        "dead": 10,
        "expired": 0,
        "discarded": 0,
        "lost": 0,
        "open": 0,
        "share": 0.9,
    }
    assert [row["waiting"] for row in tables.ask(BACKLOG).by_name()] == [0]
    assert [row["came"] for row in tables.ask(BACKLOG).by_name()] == [100]
    for report in (DAYS, PUBLISHERS):
        [row] = tables.ask(report).by_name()
        assert (row["published"], row["copies"]) == (100, 100)
    minutes = tables.ask(THROUGHPUT).by_name()
    names = ("published", "copies", "handed", "ended", "dead")
    counts = [sum(row[name] for row in minutes) for name in names]
    assert counts == [100, 100, 100 + 30 + 10, 100, 10]
    assert all(row["published"] == row["copies"] for row in minutes)
    [latency] = tables.ask(LATENCY).by_name()
    assert (latency["n"], latency["acked"]) == (100, 90)


def test_a_move_counts_once_wherever_the_worker_is_that_does_it(
    tmp_path: Path, shelf: Shelf
) -> None:
    """Work of another process leaves its queue only when it is done."""
    told = [published(1, 1, "/jobs")]
    for n, who in enumerate(("ann/1", "bob/1"), 1):
        told += [published(1, 1, "/jobs", size=0, kept=0)._replace(ts=START_US + n)]
        told.append(handed(n + 1, 1, who, n))
        told.append(refused(n + 1.1, 1, who, n) if n == 1 else acked(n + 1.1, 1, who))
        if n == 1:
            told.append(event("moved", n + 1.2, 1, receiver=who))
            told.append(published(1, -1, "/jobs", size=0, kept=0))
    told.append(event("moved", 4, 1, receiver="work:/jobs/0"))
    told.append(published(1, -1, "/jobs", size=0))
    lent = shelf(store_events(tmp_path / "lent", one_run(told)))
    own = shelf(store_events(tmp_path / "own", one_run(work(1, dead=0))))
    counts = rows(own.ask(FUNNEL), "copies", "moves", "acked", "open")
    assert rows(lent.ask(FUNNEL), "copies", "moves", "acked", "open") == counts == [(1, 1, 1, 0)]
    advice = rows(own.ask(HOLDBACK_ADVICE), "retried", "succeeded", "max_attempts")
    assert rows(lent.ask(HOLDBACK_ADVICE), "retried", "succeeded", "max_attempts") == advice
    assert advice == [(1, 1, 2)]


def test_deaths_with_the_same_code_and_channel_are_one_row(tables: Tables) -> None:
    assert rows(tables.ask(DEAD), "code", "channel", "dead", "receivers") == [
        ("user.update.internalError", "/poison", 3, 3),
        ("user.update.error", "/chat", 1, 1),
        ("user.update.error", "/orders", 1, 1),
    ]


def test_a_message_that_dies_for_most_receivers_is_poison(tables: Tables) -> None:
    assert rows(tables.ask(POISON), "channel", "receivers", "dead", "share", "code") == [
        ("/poison", 3, 3, 1.0, "user.update.internalError")
    ]


def test_every_column_of_every_table_is_explained_once_and_in_order(tables: Tables) -> None:
    questions = {**REPORTS, "latency-by-hour": BY_HOUR}
    found = {name: result_of(tables.ask(each, 1)).columns for name, each in questions.items()}
    # The columns of findings are tested with the audit.
    explained = {name: [column.name for column in each] for name, each in COLUMNS.items()}
    assert found == {name: each for name, each in explained.items() if name != "audit"}


def test_latencies_are_in_milliseconds(tables: Tables) -> None:
    columns = ("channel", "n", "delivery_p50", "delivery_max", "acked", "answer_p50", "answer_max")
    found = {name: numbers for name, *numbers in rows(tables.ask(LATENCY), *columns)}
    assert list(found) == ["/chat", "/orders", "/poison", "/slow"]
    assert found["/chat"] == pytest.approx([10, 10, 10, 9, 40, 50], rel=0.01)
    assert found["/orders"] == pytest.approx([9, 10, 10, 8, 40, 50], rel=0.01)
    assert found["/poison"][:3] == pytest.approx([3, 100, 100], rel=0.01)
    assert found["/poison"][3:] == [0, None, None]
    assert found["/slow"] == pytest.approx([1, 0, 0, 1, 6000, 6000], rel=0.01)


def test_results_for_the_console_have_the_times_and_ids_of_the_administration(
    tables: Tables,
) -> None:
    found = find_out(tables)
    assert {name: len(value["rows"]) for name, value in found.items()} == {
        "funnel": 4,
        "dead": 3,
        "causes": 3,
        "latency": 4,
        "poison": 1,
        "holdback-advice": 1,
        "trend": 4,
        "lag": 3,
        "refused-publishes": 0,
    }
    poison = found["poison"]
    assert poison["title"] == "Poison messages"
    assert [*poison["rows"][0]] == [column["name"] for column in poison["columns"]]
    assert poison["columns"][0] == {
        "name": "message",
        "form": "message",
        "meaning": "The message; holdfast message shows every step of it.",
    }
    assert {value["since"] for value in found.values()} == {START_US // 1000}
    hour = found["latency"]["rows"][0]
    assert (hour["hour"], hour["channel"], hour["n"]) == (START_US // 1000, "/chat", 10)
    assert found["poison"]["rows"][0] == {
        "message": f"n1-{START_US * 1000 + 40 * 10**9}",
        "channel": "/poison",
        "receivers": 3,
        "dead": 3,
        "share": 1.0,
        "code": "user.update.internalError",
    }


LATER_MS = START_US // 1000 + 40_000


@pytest.mark.parametrize(
    ("wanted", "letters"),
    [
        ({}, [0, 40, 40, 40]),
        ({"subject": "b", "code": "user.update.internalError"}, [40]),
        (
            {"receiver": "bob/1", "channel": "/chat", "fingerprint": "f", "until": LATER_MS},
            [0],
        ),
        ({"since": LATER_MS}, [40, 40, 40]),
    ],
)
def test_a_plan_has_the_selected_letters_that_were_not_replayed(
    tables: Tables, wanted: dict[str, Any], letters: list[int]
) -> None:
    assert planned(tables, wanted) == letters


def test_a_plan_can_leave_out_poison_messages(tables: Tables) -> None:
    assert planned(tables, {}, without_poison=True) == [0]


def test_a_plan_knows_every_condition_of_the_servers_filter() -> None:
    # Only the server knows which letters there are, and their states.
    assert CONDITIONS.keys() == LetterFilter.model_fields.keys() - {"ids", "state"}


def test_a_plan_reads_each_condition_as_the_server_does(tmp_path: Path, shelf: Shelf) -> None:
    told = [published(1, 2), published(2, 2, "/b")]
    told += [*died(3, 1, "joe.a/1"), *died(4, 1, "joe.a/-2", "user.update.internalError")]
    told += [*died(4, 2, "joe/1"), *died(5, 2, "anonymous/-3")]
    tables = shelf(store(tmp_path, made_of(one_run(told)).life))
    plan(tables, {})
    letters = {tuple(row.items()): letter_of(row) for row in tables.ask(PLAN).by_name()}
    for name in CONDITIONS:
        for value in {value_of(name, letter) for letter in letters.values()} | {UNSEEN[name]}:
            plan(tables, {name: value})
            found = {tuple(row.items()) for row in tables.ask(PLAN).by_name()}
            filter = LetterFilter.model_validate({name: value})
            first, last = filter.range()
            assert found == {
                row
                for row, letter in letters.items()
                if filter.matches(letter) and first <= letter.id <= last
            }, (name, value)


UNSEEN = {
    "channel": "/unseen",
    "receiver": "unseen/1",
    "subject": "unseen",
    "code": "user.update.unseen",
    "fingerprint": "0",
    "since": 2 * START_US // 1000,
    "until": 0,
}


def letter_of(row: dict[str, Any]) -> DeadLetter:
    """Make the letter as the server had it, with the fingerprint of the story."""
    message = Message(b"{}", id=row["msg"], channel=row["channel"])
    died_us = round(row["died"].timestamp() * 1_000_000)
    receiver = f"client/{row['receiver']}"
    letter = DeadLetter.of(
        message, id=letter_id(died_us * 1000), receiver=receiver, code=row["code"], reason=""
    )
    return letter._replace(fingerprint=row["fingerprint"])


def value_of(name: str, letter: DeadLetter) -> str | int:
    """Return the value of a condition that holds for the letter, or almost."""
    if name in {"since", "until"}:
        return int(letter.id) // NS_PER_MS
    value: str = letter.key if name == "receiver" else getattr(letter, name)
    return value


def planned(tables: Tables, wanted: dict[str, Any], **how: Any) -> list[int]:
    plan(tables, wanted, **how)
    return [int(letter) for part in parts(tables, 2) for letter in part]


@pytest.mark.parametrize(
    ("to", "letters"),
    [
        ("kim/1", [22, 31, 52, 62, 72]),
        ("joe/1", [12, 22, 23, 31, 43, 52, 62, 72, 82, 92]),
        (None, [12, 22, 23, 31, 43, 52, 62, 72, 82, 92]),
    ],
)
def test_a_plan_leaves_out_letters_whose_message_the_target_got_by_another_replay(
    tmp_path: Path, shelf: Shelf, to: str | None, letters: list[int]
) -> None:
    names = ("msg", "receiver", "generation", "state", "letter", "replay_of")
    life = [
        dict(zip(names, row, strict=True))
        for row in (
            # Kim got it by a replay of ann's letter.
            (1, "ann/1", 0, "dead", 11, []),
            (1, "bob/1", 0, "dead", 12, []),
            (1, "kim/1", 1, "acked", None, [11]),
            (2, "ann/1", 0, "dead", 21, []),
            (2, "kim/1", 1, "dead", 22, [21]),
            (2, "bob/1", 0, "dead", 23, []),
            # Kim got it when it was published.
            (3, "ann/1", 0, "dead", 31, []),
            (3, "kim/1", 0, "acked", None, []),
            # It died again for ann; then kim got it by a replay of bob's letter.
            (4, "ann/1", 0, "dead", 41, []),
            (4, "bob/1", 0, "dead", 42, []),
            (4, "ann/1", 1, "dead", 43, [41]),
            (4, "kim/1", 1, "acked", None, [42]),
            # A replay to kim ended in each of these ways.
            *_ends_of_one_for_both(5, "discarded"),
            *_ends_of_one_for_both(6, "expired"),
            *_ends_of_one_for_both(7, "lost_with_process"),
            *_ends_of_one_for_both(8, "written"),
            *_ends_of_one_for_both(9, "open"),
        )
    ]
    whole = pa.Table.from_pylist([{"origin": "n1", **row} for row in life], LIFE)
    assert planned(shelf(store(tmp_path, whole)), {}, to=to) == letters


def _ends_of_one_for_both(msg: int, state: str) -> list[tuple[Any, ...]]:
    return [
        (msg, "ann/1", 0, "dead", 10 * msg + 1, []),
        (msg, "bob/1", 0, "dead", 10 * msg + 2, []),
        (msg, "kim/1", 1, state, None, [10 * msg + 1]),
    ]


def test_letters_of_one_message_are_in_the_same_part_of_a_plan() -> None:
    letters = [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 6), (4, 7), (4, 8), (4, 9), (5, 10)]
    with opened(is_mixed=False) as tables:
        tables.add("plan", "msg bigint, letter bigint", letters)
        found = [[int(id) for id in part] for part in parts(tables, 3)]
    assert found == [[1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]


def test_letters_that_were_replayed_to_another_session_are_not_planned_again(
    tmp_path: Path, shelf: Shelf
) -> None:
    told = [published(1, 3)]
    for n, who in enumerate(("eve/1", "kim/1", "joe/1"), 1):
        told += [each._replace(letter=n) for each in died(2, 1, who)]
    to_zoe = {"receiver": "zoe/1", "generation": 1}
    told.append(event("replayed", 3, 1, letter=1, **to_zoe))
    first = made_of(one_run(told))
    # The same message in the same generation counts as one life.
    again = [acked(4, 1, "zoe/1"), event("replayed", 5, 1, letter=2, **to_zoe)]
    second = made_of(one_run([*told, *again])[len(told) :], first)
    is_over = pc.not_equal(first.life["state"], OPEN)
    life = pa.concat_tables([first.life.filter(is_over), second.life])
    assert planned(shelf(store(tmp_path, life)), {}) == [3]


def test_the_summary_of_a_plan_groups_letters_by_channel_and_code(tables: Tables) -> None:
    columns = ("channel", "code", "letters", "receivers")
    plan(tables, {})
    assert rows(tables.ask(SUMMARY), *columns) == [
        ("/poison", "user.update.internalError", 3, 3),
        ("/chat", "user.update.error", 1, 1),
    ]


def test_the_receiver_with_most_redeliveries_comes_first(tables: Tables) -> None:
    found = rows(tables.ask(REDELIVERY), "receiver", "copies", "redeliveries", "attempts", "share")
    assert found[0] == ("joe/1", 1, 2, 3, 1.0)
    # The others refused what they got, and got it only once.
    assert {row[0] for row in found[1:]} == {"a/1", "b/1", "c/1", "bob/1"}
    assert {row[2] for row in found[1:]} == {0}


def test_a_receiver_that_loses_contact_repeatedly_is_flapping(tables: Tables) -> None:
    assert rows(tables.ask(FLAPPING), "receiver", "losses", "how") == [("joe/1", 3, "polling")]


def test_the_advised_backoff_is_the_one_after_which_retries_succeeded(tables: Tables) -> None:
    columns = ("channel", "retried", "succeeded", "backoff", "max_attempts", "share")
    # Copies that died at their first attempt say nothing about retries.
    assert rows(tables.ask(HOLDBACK_ADVICE), *columns) == [("/slow", 1, 1, 3000.0, 3, 1.0)]


def test_the_success_of_the_next_receiver_of_work_is_the_success_of_a_retry(
    tmp_path: Path, shelf: Shelf
) -> None:
    tables = shelf(store_events(tmp_path, one_run(work(100, dead=10))))
    columns = ("channel", "retried", "succeeded", "backoff", "max_attempts", "share")
    # From the first hand-over to the ack of the second receiver.
    assert rows(tables.ask(HOLDBACK_ADVICE), *columns) == [("/jobs", 40, 30, 3000.0, 2, 0.75)]


def test_messages_that_returned_because_another_one_failed_are_no_retries(
    tmp_path: Path, shelf: Shelf
) -> None:
    told = [published(1, 1), published(2, 1), refused(3, 1, "ann/1")]
    for msg in (1, 2):
        told += [handed(2, msg, "ann/1"), event("returned", 3, msg, receiver="ann/1")]
        told += [handed(4, msg, "ann/1", 2), acked(5, msg, "ann/1")]
    tables = shelf(store_events(tmp_path, one_run(told)))
    assert rows(tables.ask(HOLDBACK_ADVICE), "retried", "succeeded", "backoff") == [(1, 1, 3000)]


def test_all_reply_channels_are_one_row_of_each_report(tmp_path: Path, shelf: Shelf) -> None:
    channels = [f"/ret/client/{n}" for n in range(3)]
    told = [published(n, 1, channel) for n, channel in enumerate(channels)]
    told += [handed(9, n, "ann/1") for n in range(3)] + died(10, 0, "ann/1")
    lake = store_events(tmp_path, one_run(told))
    tables = shelf(lake)
    for report in (FUNNEL, DEAD, LATENCY):
        assert rows(tables.ask(report), "channel") == [("/ret/*",)]
    assert rows(tables.ask(FUNNEL), "copies", "dead", "open") == [(3, 1, 2)]
    for channel in ("/ret/*", channels[1]):
        of_replies = shelf(lake, Scope(channel=channel)).ask(FUNNEL)
        assert rows(of_replies, "copies", "dead", "open") == [(3, 1, 2)]


def test_throughput_sums_up_each_minute(tables: Tables) -> None:
    columns = ("minute", "published", "copies", "bytes", "handed", "ended", "dead")
    found = rows(tables.ask(THROUGHPUT), *columns)
    assert [row[1:] for row in found] == [(12, 25, 1200, 27, 25, 5)]


def at(second: int) -> int:
    return START_US // 1000 + second * 1000


@pytest.mark.parametrize(
    ("scope", "funnels", "handed"),
    [
        (
            Scope(since=at(5)),
            {"/chat": (2, 4), "/orders": (3, 6), "/poison": (1, 4), "/slow": (1, 1)},
            17,
        ),
        (Scope(until=at(2)), {"/chat": (1, 2), "/orders": (1, 2)}, 4),
        (Scope(since=at(1), until=at(4), channel="/orders"), {"/orders": (2, 4)}, 4),
        (Scope(receiver="joe/1"), {"/slow": (1, 1)}, 3),
        (Scope(receiver="ann/1", channel="/chat"), {"/chat": (5, 5)}, 5),
        (Scope(channel="/nowhere"), {}, 0),
    ],
)
def test_a_report_with_a_scope_counts_only_messages_within_it(
    lake: Lake, shelf: Shelf, scope: Scope, funnels: dict[str, tuple[int, int]], handed: int
) -> None:
    tables = shelf(lake, scope)
    found = rows(tables.ask(FUNNEL), "channel", "published", "copies")
    assert {channel: counts for channel, *counts in found} == {
        channel: [*counts] for channel, counts in funnels.items()
    }
    assert sum(count for (count,) in rows(tables.ask(THROUGHPUT), "handed")) == handed
    assert dict(rows(tables.ask(LATENCY), "channel", "n")).keys() == funnels.keys()


def test_a_flapping_receiver_is_found_even_if_the_scope_has_a_channel(
    lake: Lake, shelf: Shelf
) -> None:
    tables = shelf(lake, Scope(receiver="joe/1", channel="/slow"))
    assert rows(tables.ask(FLAPPING), "receiver") == [("joe/1",)]


@pytest.mark.parametrize(("has_resumed", "found"), [(True, []), (False, [("joe/1", 3)])])
def test_a_receiver_is_not_blamed_for_kills_of_the_server(
    tmp_path: Path, shelf: Shelf, has_resumed: bool, found: list[object]
) -> None:
    told = [published(1, 1), handed(2, 1, "joe/1"), acked(3, 1, "joe/1")]
    for n in range(3):
        if has_resumed:
            told.append(event("session", 100 * n + 10, receiver="joe/1", what="resumed"))
        told.append(event("session", 100 * n + 15, receiver="joe/1", what="taken_over"))
    tables = shelf(store_events(tmp_path, one_run(told)))
    assert rows(tables.ask(FLAPPING), "receiver", "losses") == found


def test_losses_between_kills_of_the_server_are_the_receivers(tmp_path: Path, shelf: Shelf) -> None:
    told = [published(1, 1), handed(2, 1, "joe/1"), acked(3, 1, "joe/1")]
    told.append(event("session", 10, receiver="joe/1", what="resumed"))
    told.append(event("dispatcher", 11, receiver="joe/1", what="alive"))
    told += [event("session", 20 + n, receiver="joe/1", what="taken_over") for n in range(3)]
    tables = shelf(store_events(tmp_path, one_run(told)))
    assert rows(tables.ask(FLAPPING), "receiver", "losses") == [("joe/1", 3)]


@pytest.mark.parametrize("scope", [Scope(receiver="ann/1"), Scope(until=at(61))])
def test_a_receiver_outside_the_scope_or_with_few_losses_is_not_flapping(
    lake: Lake, shelf: Shelf, scope: Scope
) -> None:
    assert rows(shelf(lake, scope).ask(FLAPPING), "receiver") == []


def test_publishers_are_reported_with_their_busiest_minute(tmp_path: Path, shelf: Shelf) -> None:
    told = [published(0, 2), published(10, 3), published(70, 1), published(80, 1, sender="eve/1")]
    # Not all of its copies are in the store.
    told.append(published(80, 1, sender="eve/1", kept=0, size=0))
    found = shelf(store_events(tmp_path, one_run(told))).ask(PUBLISHERS)
    columns = ("sender", "published", "copies", "bytes", "most_per_minute")
    assert rows(found, *columns) == [
        ("pub/1", 3, 6, 300, 2),
        ("eve/1", 1, 2, 100, 1),
    ]
    [busiest, _] = rows(found, "busiest")
    assert busiest[0].timestamp() * 1_000_000 == START_US


def test_receivers_are_ranked_by_ack_time_without_those_with_few_acks(
    tmp_path: Path, shelf: Shelf
) -> None:
    told = [published(n, 3) for n in range(10)]
    for n in range(10):
        told += [handed(n + 0.5, n, "ann/1"), acked(n + 0.6, n, "ann/1")]
        told += [handed(n + 0.5, n, "joe/1"), acked(n + 0.5 + n, n, "joe/1")]
    told += [handed(9.5, 9, "eve/1"), acked(99, 9, "eve/1")]
    tables = shelf(store_events(tmp_path, one_run(told)))
    assert rows(tables.ask(SLOW_RECEIVERS), "receiver", "acked", "ack_p50", "ack_max") == [
        ("joe/1", 10, 4500, 9000),
        ("ann/1", 10, 100, 100),
    ]
