"""What the server measures for alerts, and how it tells operators."""

import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from holdfast.settings import ChannelSettings
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin.alert_limits import AlertLimits
from holdfast.web.prometheus.metric_families import BayeuxCollector
from holdfast.web.scheduling.speaking import OwnStoreRight
from tests.store.servers import ValkeyServer
from tests.unit.bayeux.harness import Client
from tests.web.live_server import LiveServer, server_at

REFUSED = "user.update.error"
MINUTE_NS = 60 * 10**9
HOUR_MS = 3_600_000


@pytest.fixture
async def server() -> AsyncIterator[LiveServer]:
    rules = {"/jobs/**": ChannelSettings(work_queue=True)}
    with ValkeyServer() as valkey:
        async with server_at(valkey, channels=rules) as server:
            yield server


def operator_at(server: LiveServer) -> Client:
    client = server.connected()
    client.session.identity.role = "operator"
    assert client.subscribe("/sys/alert").reply["successful"]
    return client


async def heard(server: LiveServer, client: Client) -> list[Any]:
    return (await server.connect(client)).data


def let_pass(server: LiveServer, minutes: float) -> None:
    """Advance both clocks."""
    server._newest += int(minutes * MINUTE_NS)
    server.now += minutes * 60


async def look(server: LiveServer, *, minutes: float = 0) -> list[str]:
    let_pass(server, minutes)
    await server.alert_watch.look()
    return [each.alert.value for each in server.alerts.raised()]


async def test_a_quiet_server_raises_no_alert(server: LiveServer) -> None:
    await server.receiver("joe/1")
    assert await look(server, minutes=60) == []


async def test_missing_replicas_are_told_at_once_and_said_first_until_they_answer(
    server: LiveServer,
) -> None:
    operator = operator_at(server)
    await server.receiver("joe/1")
    await server.publish(1)
    server.replicas_complaint = "too few replicas confirm messages"
    server.alert_watch.replicas_changed()
    [told] = await heard(server, operator)
    assert (told["kind"], told["alert"]) == ("alert raised", "replicas")
    assert "start the replica" in told["next"]
    assert (await server.api.system.now(5)).sentence == "too few replicas confirm messages"
    server.replicas_complaint = ""
    server.alert_watch.replicas_changed()
    assert await look(server) == []


async def test_an_old_entry_is_told_once_on_the_channel_and_in_the_log_and_cleared_once(
    server: LiveServer, caplog: pytest.LogCaptureFixture
) -> None:
    joe, operator = await server.receiver("joe/1"), operator_at(server)
    await server.publish(1)
    assert await look(server) == []
    with caplog.at_level(logging.INFO):
        assert await look(server, minutes=10) == ["oldest"]
        assert await look(server, minutes=10) == ["oldest"]
        [told] = await heard(server, operator)
        await server.connect(joe)
        await server.connect(joe)
        assert await look(server) == ["oldest"]
        assert await look(server, minutes=4) == ["oldest"]
        assert await look(server, minutes=1) == []
        assert await look(server, minutes=1) == []
    assert (told["kind"], told["alert"]) == ("alert raised", "oldest")
    assert told["reason"].startswith("a message on /a of ")
    assert told["reason"].endswith(" waits for joe/1")
    assert "holdfast message " in told["next"]
    [over] = await heard(server, operator)
    assert (over["kind"], over["alert"], over["since"]) == (
        "alert cleared",
        "oldest",
        told["since"],
    )
    lines = [each.message for each in caplog.records if each.message.startswith("alert ")]
    assert [re.split("[:;]", line)[0] for line in lines] == [
        "alert oldest is raised",
        "alert oldest is cleared",
    ]
    assert told["next"] in lines[0]


async def test_alerts_are_part_of_what_is_stuck_now_and_of_the_figures(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    await server.publish(1)
    await server.connect(joe)
    await look(server, minutes=11)
    now = await server.api.system.now()
    [alert] = now.alerts.items
    assert alert.alert == "oldest"
    assert alert.reason.endswith(" has not been acknowledged by joe/1")
    assert now.figures.alerts == 1


async def test_an_entry_for_a_client_that_is_away_is_an_alert_only_if_one_is_wanted(
    server: LiveServer,
) -> None:
    (await server.receiver("joe/1")).disconnect()
    await server.publish(1)
    assert await look(server, minutes=30) == []
    server.alert_limits = AlertLimits(absent=1_800_000)
    assert await look(server) == ["absent"]
    [alert] = server.alerts.raised()
    assert "holdfast session end joe/1" in alert.next


async def test_work_without_a_worker_grows_old_for_somebody_who_ought_to_be_here(
    server: LiveServer,
) -> None:
    server.client().publish("/jobs/b", 1)
    await server.store_process.answered()
    assert await look(server, minutes=11) == ["oldest"]
    [alert] = server.alerts.raised()
    assert alert.reason.endswith(" waits for a worker")


async def test_letters_and_refusals_are_alerts_when_they_are_many(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    server.alert_limits = AlertLimits(letters=3, refused_at_least=3)
    await server.publish(1, 2)
    await server.refuse(joe, REFUSED)
    assert await look(server) == []
    await server.publish(3)
    await server.refuse(joe, REFUSED)
    assert await look(server) == ["letters", "refused"]
    letters, refused = server.alerts.raised()
    assert letters.reason == "3 dead letters within a minute"
    assert refused.reason == "100% of 3 messages were refused within five minutes"
    assert await look(server, minutes=6) == ["letters", "refused"]
    assert await look(server, minutes=6) == []


def journal(server: LiveServer, ago_ms: int) -> str:
    """Write a frame that is so old; return the id of its entry."""
    node, now_ms = server.bayeux.state.node.name, server.bayeux.state.node.now_ms()
    id = f"{now_ms - ago_ms}-0"
    server.store_process.server.ask(
        "XADD", server.store_process.store.keys.journal(node), id, "frame", b""
    )
    return id


def read_until(server: LiveServer, lake: str, id: str) -> None:
    key = server.store_process.store.keys.journal_read(server.bayeux.state.node.name)
    server.store_process.server.ask("HSET", key, lake, id)


async def test_tables_that_lack_old_events_are_named(server: LiveServer) -> None:
    old, new = journal(server, 3 * HOUR_MS), journal(server, HOUR_MS)
    assert await look(server, minutes=1) == []
    read_until(server, "a-lake", new)
    read_until(server, "b-lake", "0-0")
    assert await look(server, minutes=1) == ["ingest"]
    [alert] = server.alerts.raised()
    assert alert.reason.startswith("the tables b-lake lack what has happened since ")
    assert "holdfast pipeline lake drop b-lake" in alert.next
    # What it lacks now is fresh, and then it lacks nothing.
    read_until(server, "b-lake", old)
    assert await look(server, minutes=1) == ["ingest"]
    assert await look(server, minutes=6) == []
    read_until(server, "b-lake", new)
    assert await look(server, minutes=600) == []


async def test_metrics_say_how_far_an_ingest_is_behind(server: LiveServer) -> None:
    async def behind_s(*, minutes: float) -> float:
        await look(server, minutes=minutes)
        collected = BayeuxCollector(server.bayeux, {}, server.alerts, OwnStoreRight()).collect()
        [found] = [each for each in collected if each.name == "holdfast_ingest_behind_seconds"]
        return float(found.samples[0].value)

    # Far below the limit of the alert.
    newest = journal(server, HOUR_MS)
    assert await behind_s(minutes=1) == 0, "nobody reads the journal"
    read_until(server, "a-lake", "0-0")
    assert await behind_s(minutes=1) == pytest.approx(3720, abs=1)
    read_until(server, "a-lake", newest)
    assert await behind_s(minutes=1) == 0


async def test_a_violation_of_the_latest_audit_is_an_alert_until_an_audit_finds_none(
    server: LiveServer,
) -> None:
    def audited(*rows: dict[str, Any]) -> None:
        at = server.bayeux.state.node.now_ms()
        result = {"v": 2, "result": "audit", "at": at, "rows": rows}
        key = server.store_process.store.keys.pipeline_result("audit")
        server.store_process.server.ask("SET", key, orjson.dumps(result))

    audited({"kind": "never_handed", "number": 2})
    assert await look(server, minutes=1) == ["audit"]
    [alert] = server.alerts.raised()
    assert alert.reason.endswith(" found 2 violations: never_handed")
    sentence = (await server.api.system.now()).sentence
    assert sentence == f"nothing waits, but {alert.reason}"
    audited()
    await look(server, minutes=1)
    assert await look(server, minutes=6) == []


async def test_what_a_store_that_is_away_would_say_changes_no_alert(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(server, 3 * HOUR_MS)
    read_until(server, "a-lake", "0-0")
    assert await look(server, minutes=1) == ["ingest"]

    async def away(*_: object) -> Any:
        raise StoreUnavailable("it is away")

    monkeypatch.setattr(server.store_process.reader, "ask", away)
    assert await look(server, minutes=60) == ["ingest"]


async def test_queues_are_not_counted_if_no_alert_is_about_them(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    monkeypatch.setattr(server.alert_watch._tallying, "count", counted.append)
    server.alert_limits = AlertLimits(oldest=0)
    assert await look(server, minutes=1) == []
    assert counted == []
