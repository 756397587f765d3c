"""The routes of the administration, each with the answer of its resource."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.store.audit import AuditEntry
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin import ndjson
from holdfast.web.admin.faults import RequestFailed
from tests.web.admin import LINES, READER, Admin, admin_of
from tests.web.fake_operations import NOW_MS, FakeOperations, a_letter, a_session

LETTER = f"{7:019}"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    sessions = [
        a_session("joe/1"),
        a_session("joe/2", state=DispatcherState.POLLING),
        a_session("anonymous/-5"),
    ]
    letters = [a_letter(n, fingerprint="f2" if n > 20 else "f1") for n in range(1, 31)]
    admin = await admin_of(FakeOperations(sessions, letters))
    yield admin
    await admin.client.close()


def changes(admin: Admin) -> list[AuditEntry]:
    return admin.operations.changes


async def test_sessions_are_listed_in_pages(admin: Admin) -> None:
    first = (await admin.ask("GET", "/sessions?limit=2")).json
    rest = (await admin.ask("GET", f"/sessions?limit=2&cursor={first['cursor']}")).json
    keys = [item["key"] for item in first["items"] + rest["items"]]
    assert keys == ["anonymous/-5", "joe/1", "joe/2"]
    assert rest["cursor"] is None


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("prefix=joe/", ["joe/1", "joe/2"]),
        ("state=POLLING", ["joe/2"]),
        ("held=true", []),
        ("held=false&prefix=a", ["anonymous/-5"]),
    ],
)
async def test_sessions_are_filtered_by_conditions(
    admin: Admin, query: str, keys: list[str]
) -> None:
    found = (await admin.ask("GET", f"/sessions?{query}", token=READER)).json
    assert [item["key"] for item in found["items"]] == keys


async def test_a_session_is_shown_with_the_head_of_its_queue(admin: Admin) -> None:
    found = (await admin.ask("GET", "/sessions/joe/1", token=READER)).json
    assert (found["key"], found["channels"], found["hold"]) == ("joe/1", ["/news"], None)
    queue = (await admin.ask("GET", "/sessions/joe/1/queue?limit=1", token=READER)).json
    assert [entry["data"] for entry in queue["items"]] == [{"n": 1}]
    assert (await admin.ask("GET", "/sessions/anonymous/-5")).json["number"] == -5


async def test_a_session_is_held_back_and_resumed(admin: Admin) -> None:
    until = 1_800_000_000_000
    body = {"reason": "disk full", "until": until}
    held = await admin.ask("PUT", "/sessions/joe/1/hold", json=body, headers={"X-Operator": "ann"})
    assert held.json["hold"]["reason"] == "disk full"
    assert (held.json["active"], held.json["hold"]["who"]) == (False, "operator/ann")
    assert (await admin.ask("DELETE", "/sessions/joe/1/hold")).json["active"] is True
    told = [(change.who, change.action, change.detail) for change in changes(admin)]
    assert told == [("operator/ann", "session.hold", body), ("operator", "session.resume", {})]


async def test_a_queue_is_emptied_and_a_session_ended(admin: Admin) -> None:
    assert (await admin.ask("DELETE", "/sessions/joe/1/queue")).json == {"discarded": 3}
    ended = await admin.ask("DELETE", "/sessions/joe/1")
    assert (ended.status, ended.body) == (204, b"")
    assert (await admin.ask("GET", "/sessions/joe/1")).status == 404
    assert [change.action for change in changes(admin)] == ["session.clear", "session.end"]


async def test_a_channel_that_the_server_holds_is_released(admin: Admin) -> None:
    held = (await admin.ask("GET", "/held-channels", token=READER)).json
    assert [item["channel"] for item in held["items"]] == ["/orders"]
    path = "/held-channels?channel=/orders"
    released = await admin.ask("DELETE", path)
    assert (released.status, released.json["channel"]) == (200, "/orders")
    assert (await admin.ask("DELETE", path)).status == 404


async def test_dead_letters_are_listed_grouped_and_shown(admin: Admin) -> None:
    page = (await admin.ask("GET", "/dead-letters?limit=3&fingerprint=f1", token=READER)).json
    assert [int(item["id"]) for item in page["items"]] == [20, 19, 18]
    assert "data" not in page["items"][0]
    groups = (await admin.ask("GET", "/dead-letters/groups", token=READER)).json
    counts = {item["fingerprint"]: item["count"] for item in groups["items"]}
    assert (counts, groups["total"]) == ({"f1": 20, "f2": 10}, 30)
    letter = (await admin.ask("GET", f"/dead-letters/{LETTER}", token=READER)).json
    assert (letter["data"], letter["history"][0]["n"]) == ({"order": 7}, 1)


async def test_a_purge_counts_before_it_removes(admin: Admin) -> None:
    body: dict[str, Any] = {"filter": {"fingerprint": "f2"}, "dry_run": True}
    counted = (await admin.ask("POST", "/dead-letters/purge", json=body)).json
    assert counted == {"matched": 10, "purged": 0, "dry_run": True}
    assert changes(admin) == []
    body["dry_run"] = False
    assert (await admin.ask("POST", "/dead-letters/purge", json=body)).json["purged"] == 10
    assert len(admin.operations.by_id) == 20


@pytest.mark.parametrize("path", ["/dead-letters/purge", "/replays"])
async def test_an_empty_filter_means_all_letters_only_with_the_option_all(
    admin: Admin, path: str
) -> None:
    assert (await admin.ask("POST", path, json={"dry_run": True})).status == 400
    assert (await admin.ask("POST", path, json={"dry_run": True, "filter": {}})).status == 400
    assert (await admin.ask("POST", path, json={"dry_run": True, "all": True})).status == 200
    assert (await admin.ask("POST", path, json={"all": True})).status == 400


async def test_a_replay_is_planned_started_watched_and_cancelled(admin: Admin) -> None:
    body = {"filter": {"ids": [LETTER, f"{8:019}"]}, "options": {"rate": 5}, "dry_run": True}
    plan = (await admin.ask("POST", "/replays", json=body)).json
    assert (plan["id"], plan["state"], plan["total"]) == (None, "planned", 2)
    job = (await admin.ask("POST", "/replays", json={**body, "dry_run": False})).json
    assert job["options"]["rate"] == 5
    path = f"/replays/{job['id']}"
    assert (await admin.ask("GET", path, token=READER)).json["sent"] == 1
    assert (await admin.ask("GET", path)).json["state"] == "done"
    assert (await admin.ask("DELETE", path)).status == 409
    other = (await admin.ask("POST", "/replays", json={**body, "dry_run": False})).json
    assert (await admin.ask("DELETE", f"/replays/{other['id']}")).json["state"] == "cancelled"
    assert len((await admin.ask("GET", "/replays")).json["items"]) == 2
    assert (await admin.ask("GET", "/replays/none")).status == 404


async def test_exported_letters_can_be_imported(admin: Admin) -> None:
    exported = await admin.ask("GET", "/dead-letters/export?fingerprint=f2", token=READER)
    assert exported.headers["Content-Type"] == "application/x-ndjson"
    lines = exported.body.splitlines()
    assert [int(orjson.loads(line)["id"]) for line in lines] == [*range(30, 20, -1)]
    del admin.operations.by_id[f"{30:019}"]
    body = exported.body + b"\n\nnonsense\n" + lines[0]
    done = (await admin.ask("POST", "/dead-letters/import", data=body, headers=LINES)).json
    assert (done["imported"], done["repeated"], done["refused"]) == (1, 10, 1)
    assert done["refusals"] == [{"line": 11, "text": "JSONDecodeError"}]


async def test_an_empty_export_is_an_empty_answer(admin: Admin) -> None:
    exported = await admin.ask("GET", "/dead-letters/export?channel=/none")
    assert (exported.status, exported.body) == (200, b"")


async def test_import_lines_may_arrive_in_any_pieces(admin: Admin) -> None:
    body = b"\n".join(orjson.dumps(a_letter(n)) for n in range(100, 104))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 37):
            yield body[start : start + 37]

    done = await admin.ask("POST", "/dead-letters/import", data=pieces(), headers=LINES)
    assert done.json["imported"] == 4


async def test_an_export_that_fails_midway_breaks_off(admin: Admin) -> None:
    admin.operations.breaks_after = 3
    with pytest.raises(Exception, match="not completed"):
        await admin.ask("GET", "/dead-letters/export")


async def test_an_export_that_fails_at_once_is_an_error(admin: Admin) -> None:
    admin.operations.fault = RequestFailed("resource.db.unavailable", "redis is away")
    failed = await admin.ask("GET", "/dead-letters/export")
    assert (failed.status, failed.code) == (503, "resource.db.unavailable")


async def test_requests_fail_with_503_while_the_store_is_away(admin: Admin) -> None:
    admin.operations.fault = StoreUnavailable("redis is away")
    failed = await admin.ask("GET", "/sessions")
    assert (failed.status, failed.code) == (503, "resource.db.unavailable")
    assert failed.json["error"]["message"] == "redis is away"


async def test_commands_read_and_change_the_state_of_the_server(admin: Admin) -> None:
    flag = {"command": "client/joe/1/?dispatcherActive"}
    asked = (await admin.ask("GET", "/commands", params=flag, token=READER)).json
    assert (asked["value"], asked["state"]) == ("true", None)
    done = (await admin.ask("POST", "/commands", json={**flag, "value": "false"})).json
    assert done["info"] == "/node/holdfast/client/joe/1/?dispatcherActive=false"
    (change,) = changes(admin)
    assert (change.action, change.who) == ("command", "operator")


@pytest.mark.parametrize(
    ("command", "status", "code"),
    [
        ("client/joe/1/?killSession", 400, "user.illegalArgument"),
        ("client/joe/1/?dispatcherActive=false", 400, "user.illegalArgument"),
        ("client/joe/1/?clearCallbackQueue", 400, "user.illegalArgument"),
        ("sysprop/Hello/?id", 400, "user.illegalArgument"),
    ],
)
async def test_a_command_in_a_get_changes_nothing(
    admin: Admin, command: str, status: int, code: str
) -> None:
    refused = await admin.ask("GET", "/commands", params={"command": command})
    assert (refused.status, refused.code) == (status, code)
    assert changes(admin) == []


async def test_the_audit_lists_the_newest_change_first(admin: Admin) -> None:
    for key in ("joe/1", "joe/2"):
        await admin.ask("DELETE", f"/sessions/{key}/hold")
    page = (await admin.ask("GET", "/audit?limit=1", token=READER)).json
    assert [entry["target"] for entry in page["items"]] == ["joe/2"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("user.notConnected", 404),
        ("user.oid.unknown", 404),
        ("user.illegalArgument", 400),
        ("user.wrongApiUsage", 409),
        ("user.maxSizeExceed", 413),
        ("user.security.authorization.notAuthorized", 403),
        ("resource.admin.unavailable", 403),
        ("resource.overflow.queue.entries", 507),
        ("resource.db.unavailable", 503),
        ("communication.noConnection", 503),
        ("internal.unknown", 500),
        ("userspace", 500),
    ],
)
async def test_each_failure_has_its_status(admin: Admin, code: str, status: int) -> None:
    admin.operations.fault = RequestFailed(code, "because")
    failed = await admin.ask("GET", "/sessions")
    assert (failed.status, failed.json["error"]) == (status, {"code": code, "message": "because"})


async def test_a_fault_of_the_server_reveals_nothing_to_the_caller(
    admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    admin.operations.fault = RuntimeError("password of redis: 12345")
    failed = await admin.ask("GET", "/sessions")
    assert (failed.status, failed.code) == (500, "internal.unknown")
    assert b"12345" not in failed.body
    assert "an administrative request failed" in caplog.text


async def test_a_long_export_is_sent_in_portions(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ndjson, "_PORTION", 100)
    exported = await admin.ask("GET", "/dead-letters/export")
    assert len(exported.body.splitlines()) == 30


async def test_the_route_about_names_the_server_and_the_caller(admin: Admin) -> None:
    name = {"X-Operator": "ann"}
    about = (await admin.ask("GET", "/about", token=READER, headers=name)).json
    assert (about["role"], about["who"]) == ("reader", "reader/ann")
    assert (await admin.ask("GET", "/about")).json["role"] == "operator"


async def test_figures_channels_and_messages_are_shown(admin: Admin) -> None:
    assert (await admin.ask("GET", "/figures", token=READER)).json["unaccounted"] == 0
    channels = (await admin.ask("GET", "/channels?limit=1", token=READER)).json
    assert [(each["name"], each["held"]) for each in channels["items"]] == [("/news", False)]
    rest = (await admin.ask("GET", f"/channels?cursor={channels['cursor']}")).json
    assert [(each["name"], each["held"]) for each in rest["items"]] == [("/orders", True)]
    path = f"/messages/holdfast-{NOW_MS}000000"
    trace = (await admin.ask("GET", path, token=READER)).json
    assert (trace["queues"][0]["receiver"], trace["cursor"]) == ("joe/1", "7-0")
    assert (await admin.ask("GET", f"{path}?cursor=7-0")).json["cursor"] is None


async def test_results_of_the_pipeline_are_shown(admin: Admin) -> None:
    found = (await admin.ask("GET", "/pipeline/dead", token=READER)).json
    assert found["rows"] == [{"code": "user.update.holdback", "dead": 3}]
    assert (await admin.ask("GET", "/pipeline", token=READER)).json["items"] == [found]
    assert (await admin.ask("GET", "/pipeline/poison")).status == 404
    assert (await admin.ask("GET", "/pipeline/secrets")).status == 400


@pytest.mark.parametrize(
    "path", ["/messages/17", "/messages/x-17", "/messages/holdfast-1?cursor=x"]
)
async def test_malformed_message_ids_are_refused(admin: Admin, path: str) -> None:
    assert (await admin.ask("GET", path)).status == 400


async def test_only_one_letter_can_be_edited_at_a_time_within_a_size_limit(admin: Admin) -> None:
    async def status(data: object, *ids: str, **filter: object) -> int:
        body = {"filter": {"ids": ids, **filter}, "options": {"edit": {"data": data}}}
        return (await admin.ask("POST", "/replays", json={**body, "dry_run": False})).status

    assert await status(None, LETTER) == 200
    assert await status({"n": 1}, LETTER, f"{8:019}") == 400
    assert await status({"n": 1}, channel="/orders") == 400
    assert await status("x" * 64 * 1024, LETTER) == 400
    assert await status(10**400, LETTER) == 400
    chosen = f'"filter":{{"ids":["{LETTER}"]}},"dry_run":false'
    headers = {"Content-Type": "application/json"}
    for wrong in ("[" * 300 + "]" * 300, "[1e999]", "NaN", "", '"\\ud800"'):
        body = f'{{{chosen},"options":{{"edit":{{"data":{wrong}}}}}}}'
        assert (await admin.ask("POST", "/replays", data=body, headers=headers)).status == 400
    assert len(admin.operations.jobs) == 1
    assert admin.operations.jobs["r1"].options["data"] == "null"


async def test_only_operators_can_write_the_remark_of_a_group(admin: Admin) -> None:
    path, said = "/dead-letters/groups/f1/remark", {"assignee": "ann", "note": "known"}
    assert (await admin.ask("PUT", path, json=said, token=READER)).status == 403
    answer = (await admin.ask("PUT", path, json=said)).json
    assert (answer["assignee"], answer["note"], answer["who"]) == ("ann", "known", "operator")
    groups = (await admin.ask("GET", "/dead-letters/groups?fingerprint=f1")).json
    assert [each["remark"] for each in groups["items"]] == [answer]
    assert (await admin.ask("PUT", path, json={"assignee": "x" * 65})).status == 400
    assert (await admin.ask("PUT", "/dead-letters/groups/none/remark", json=said)).status == 404
