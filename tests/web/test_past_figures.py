"""What operators see of the past: rows by minute and hour, and who publishes and gets most."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from holdfast.delivery.basics.ranking import RankingKind
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.store.format.figure_records import FigureRow
from holdfast.web.admin import past as past_resource
from holdfast.web.admin.faults import RequestFailed
from holdfast.web.admin.past import PastRow, Top
from holdfast.web.joint.asking import Answer
from holdfast.web.joint.hearing import Heard
from holdfast.web.joint.past_rows import PastRule
from holdfast.web.joint.past_rows import past as joined
from holdfast.web.joint.past_rows import top as joined_top
from tests.unit.web.test_joint_readings import as_json
from tests.web.fake_operations import a_past_row, a_top, some_past
from tests.web.live_server import LiveServer

MINUTE_MS = 60_000


def pass_time(server: LiveServer, seconds: float, *, wall: float = 0.0) -> None:
    """Let this time pass; the wall clock is also set forward or back."""
    server.running_s += seconds
    server.wall_s += seconds + wall


async def minutes(server: LiveServer, step: int = 0, **asked: int) -> list[PastRow]:
    return (await server.api.past.past(None, None, step, **asked)).rows


async def test_a_minute_has_what_happened_in_it(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    await server.publish(1, 2)
    pass_time(server, 20)
    await server.figure_keeper.note()
    await server.connect(joe)
    pass_time(server, 20)
    await server.publish(3)
    [row] = await minutes(server)
    assert (row.published, row.accepted) == (3, 3)
    # Counted a moment ago, for the first reading.
    assert row.waiting + row.in_flight == 2
    assert (row.served_ms, row.starts, row.created, row.sessions) == (40_000, 1, 1, 1)
    assert sum(row.hand_over_durable) == 2
    pass_time(server, 60)
    await server.publish(4)
    first, second = await minutes(server)
    assert (second.time - first.time, second.published, second.starts) == (MINUTE_MS, 1, 0)


async def test_a_clock_that_is_set_back_adds_to_minutes_that_were(server: LiveServer) -> None:
    await server.publish(1)
    pass_time(server, 60)
    await server.figure_keeper.note()
    await server.publish(2, 3)
    pass_time(server, 60, wall=-60)
    [row] = await minutes(server)
    # The rate is right all the same.
    assert (row.published, row.served_ms) == (3, 120_000)


async def test_minutes_without_a_server_are_absent(server: LiveServer) -> None:
    await server.publish(1)
    pass_time(server, 60)
    await server.figure_keeper.note()
    pass_time(server, 60, wall=600)
    first, second = await minutes(server)
    assert second.time - first.time == 11 * MINUTE_MS


async def test_a_process_that_leaves_has_noted_everything(server: LiveServer) -> None:
    await server.publish(1)
    pass_time(server, 10)
    keeper = server.figure_keeper
    await keeper.close()
    await server.publish(2)
    pass_time(server, 10)
    assert [row.published for row in await minutes(server)] == [1]
    # The next process could not begin.
    keeper.go_on()
    pass_time(server, 10)
    assert [(row.published, row.starts) for row in await minutes(server)] == [(2, 1)]
    assert await server.store_process.reader.ask("EXISTS", server.store_process.store.keys.figures)


async def test_steps_are_sums_and_lengths_their_largest(server: LiveServer) -> None:
    for number in range(5):
        await server.receiver(f"joe/{number + 1}")
        await server.publish(number)
        pass_time(server, 60)
        await server.figure_keeper.note()
    rows = await minutes(server, step=31 * 24 * 60 * MINUTE_MS)
    assert [(row.published, row.sessions, row.created) for row in rows] == [(5, 5, 5)]
    with pytest.raises(RequestFailed, match="whole minutes"):
        await minutes(server, step=MINUTE_MS + 1)
    long_ago = round(server.wall_s * 1000) - 5 * 24 * 60 * MINUTE_MS
    hours = await server.api.past.past(long_ago, None, 0)
    assert (sum(row.published for row in hours.rows), hours.step_ms) == (5, 60 * MINUTE_MS)
    with pytest.raises(RequestFailed, match="whole hours"):
        await server.api.past.past(long_ago, None, MINUTE_MS)


async def test_many_who_ask_at_once_cost_one_reading(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    readings = server.figure_keeper._readings
    take = readings.row

    def row(*given: Any) -> FigureRow:
        nonlocal taken
        taken += 1
        return take(*given)

    monkeypatch.setattr(readings, "row", row)
    pass_time(server, 10)
    await asyncio.gather(*(minutes(server) for _ in range(20)))
    assert taken == 1


async def test_many_who_ask_at_once_are_answered_one_after_the_other(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(70):
        pass_time(server, 60)
        await server.figure_keeper.note()
    made, most = 0, 0
    stepped = past_resource._stepped

    async def watched(rows: Iterator[FigureRow], step: int) -> AsyncIterator[FigureRow]:
        nonlocal made, most
        made += 1
        most = max(most, made)
        async for row in stepped(rows, step):
            yield row
        made -= 1

    monkeypatch.setattr(past_resource, "_stepped", watched)
    found = await asyncio.gather(*(minutes(server) for _ in range(10)))
    assert {len(rows) for rows in found} == {70}
    assert most == 1


async def test_joint_rows_are_made_one_after_the_other() -> None:
    asked, most = 0, 0

    class Asked:
        making_large = asyncio.Lock()

        async def ask_all(self, _: object) -> list[Answer]:
            nonlocal asked, most
            asked += 1
            most = max(most, asked)
            await asyncio.sleep(0)
            asked -= 1
            return [Answer(0, 200, as_json(some_past(a_past_row(1))))]

    shards: Any = Asked()
    ask: Any = None
    found = await asyncio.gather(*(PastRule().answer(shards, ask) for _ in range(5)))
    assert [len(each["rows"]) for each in found] == [1] * 5
    assert most == 1


async def test_the_noisiest_publisher_and_the_busiest_receiver_are_named(
    server: LiveServer,
) -> None:
    joe = await server.receiver("joe/1")
    await server.receiver("ann/1")
    await server.publish(1, 2, 3)
    await server.connect(joe)
    pass_time(server, 10)

    async def top(by: str) -> Top:
        return await server.api.past.top(RankingKind(by))

    channels = await top("channels")
    assert [(each.count, each.at_most) for each in channels.items] == [(3, 3)]
    assert (channels.missing, channels.since % (60 * MINUTE_MS)) == (0, 0)
    server.bayeux.state.ledger.rankings.published("client/ann/1", "/ret/x/1")
    pass_time(server, 10)
    assert [(each.name, each.count) for each in (await top("senders")).items] == [("ann/1", 1)]
    assert [each.name for each in (await top("channels")).items][1:] == ["/ret/*"]
    [busiest, *others] = (await top("receivers")).items
    assert (busiest.name, busiest.count, others) == ("joe/1", 3, [])
    other = await server.api.past.top(RankingKind.CHANNELS, shard=1)
    assert other.items == []
    assert await minutes(server, shard=1) == []
    assert len(await minutes(server, shard=0)) == 1


async def test_what_an_ended_session_got_counts(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    await server.publish(1)
    await server.connect(joe)
    await server.api.sessions.end_session("joe/1", "operator")
    pass_time(server, 10)
    found = await server.api.past.top(RankingKind.RECEIVERS)
    assert [(each.name, each.count) for each in found.items] == [("joe/1", 1)]


async def test_holds_are_marked(server: LiveServer) -> None:
    await server.receiver("joe/1")
    await server.api.sessions.hold("joe/1", who="operator")
    await server.api.system.hold_channel("/news", who="operator")
    pass_time(server, 10)
    assert [row.holds for row in await minutes(server)] == [2]
    session = await server.api.sessions.session("joe/1")
    assert session.state is not DispatcherState.DEAD


async def test_rows_of_shards_are_one_for_each_step() -> None:
    one = some_past(a_past_row(1, published=2, waiting=5), a_past_row(2, oldest_ms=7))
    other = some_past(a_past_row(2, published=5, waiting=3, oldest_ms=9, turn=[1] * 13))
    joint = await joined([as_json(one), as_json(other)])
    shown = [(row["time"], row["published"], row["waiting"]) for row in joint["rows"]]
    assert shown == [(MINUTE_MS, 2, 5), (2 * MINUTE_MS, 5, 3)]
    assert joint["rows"][1]["turn"] == [1] * 13
    assert joint["rows"][1]["oldest_ms"] == 9
    assert joint["rows"][1]["served_ms"] == MINUTE_MS


def test_rankings_of_shards_add_their_errors() -> None:
    found = [Answer(shard, 200, as_json(a_top("senders"))) for shard in (0, 1)]
    joint = joined_top(Heard(found), 2)
    assert joint["missing"] == 4
    assert joint["items"] == [
        {"name": "senders 0", "count": 20, "at_most": 24},
        {"name": "senders 1", "count": 18, "at_most": 22},
    ]
    assert math.isfinite(joint["since"])
