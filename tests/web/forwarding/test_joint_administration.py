"""The administration of any worker answers for all shards."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.web.admin.resources import ROUTES
from holdfast.web.joint import rules
from holdfast.web.joint.route_rules import RULES
from tests.openmetrics import read_openmetrics
from tests.web.forwarding.operators import API, Operator, operator
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person
from tests.web.people import until as until_async

LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path) as both:
        yield both


@pytest.fixture
async def ada(both: Workers, tmp_path: Path) -> AsyncIterator[Operator]:
    async with operator(both, tmp_path) as ada:
        yield ada


def test_the_table_says_what_each_route_does_with_several_shards() -> None:
    assert sorted(RULES) == sorted(route.handler for route in ROUTES)


async def named(both: Workers, count: int = 2) -> list[str]:
    """Begin sessions of subjects in both shards; returns their keys, in order."""
    keys = []
    for shard in (0, 1):
        for n in range(count):
            subject = both.subject_of(shard, f"user-{n}-")
            person = both.person(0)
            await person.handshake(f"{subject}/1")
            await person.reply("/meta/subscribe", subscription="/news")
            keys.append(f"{subject}/1")
    return sorted(keys)


async def test_sessions_of_all_shards_are_listed_in_order(both: Workers, ada: Operator) -> None:
    keys = await named(both)
    page = await ada.get("/sessions")
    assert [each["key"] for each in page["items"]] == keys
    assert page["unanswered"] == []
    homes = [both.home_of(key.partition("/")[0]) for key in keys]
    assert [each["shard"] for each in page["items"]] == homes


async def test_a_cursor_goes_through_the_sessions_of_all_shards(
    both: Workers, ada: Operator
) -> None:
    keys, found, cursor = await named(both), [], ""
    while cursor is not None:
        page = await ada.get("/sessions", limit=1, **({"cursor": cursor} if cursor else {}))
        found += [each["key"] for each in page["items"]]
        cursor = page["cursor"]
    assert found == keys


async def test_the_lists_of_all_shards_are_sorted_by_a_field(both: Workers, ada: Operator) -> None:
    keys = await named(both)
    found: list[Any] = []
    asked: dict[str, str] = {"sort": "-created"}
    while asked:
        page = await ada.get("/sessions", limit=1, **asked)
        found += page["items"]
        asked = {**asked, "cursor": page["cursor"]} if page["cursor"] else {}
    assert sorted(each["key"] for each in found) == keys
    assert found == sorted(found, key=lambda each: (each["created"], each["key"]), reverse=True)
    assert {each["shard"] for each in found} == {0, 1}
    # Both shards have subscribers of this one, and are counted together.
    first = await ada.get("/channels", sort="-subscribers", limit=1)
    found = [(each["name"], each["subscribers"]) for each in first["items"]]
    assert found == [("/news", len(keys))]
    for path in ("/topics?sort=state", "/subjects?sort=-bytes", "/work-queues?sort=oldest"):
        assert "items" in await ada.get(path)
    for path in ("/dead-letters?sort=-attempts", "/delayed?sort=-bytes"):
        assert "items" in await ada.get(path)
    assert "items" in await ada.get("/audit?sort=who")
    status, refused = await ada.ask("GET", "/sessions?sort=colour")
    assert (status, "choose one of" in refused["error"]["message"]) == (400, True)


@pytest.mark.parametrize("sort", ["shard", "-shard"])
async def test_sessions_are_sorted_by_the_shard_that_has_them(
    both: Workers, ada: Operator, sort: str
) -> None:
    keys = await named(both)
    is_descending = sort.startswith("-")
    wanted = sorted(
        ((both.home_of(key.partition("/")[0]), key) for key in keys), reverse=is_descending
    )
    for limit in (1, 3, 4):
        found: list[tuple[int, str]] = []
        asked: dict[str, str] = {"sort": sort}
        while asked:
            page = await ada.get("/sessions", limit=limit, **asked)
            found += [(each["shard"], each["key"]) for each in page["items"]]
            asked = {**asked, "cursor": page["cursor"]} if page["cursor"] else {}
        assert found == wanted
    nowhere = orjson.dumps([not is_descending, 7, "joe/1"]).hex()
    status, refused = await ada.ask("GET", f"/sessions?sort={sort}&cursor={nowhere}")
    assert (status, refused["error"]["message"]) == (400, "cursor: not a cursor of this list")


async def test_one_session_is_shown_held_and_ended_wherever_it_is(
    both: Workers, ada: Operator
) -> None:
    for key in await named(both, 1):
        assert (await ada.get(f"/sessions/{key}"))["key"] == key
        held = await ada.change("PUT", f"/sessions/{key}/hold", {"reason": "why"})
        assert held["hold"]["who"] == "operator/ada"
        assert (await ada.get(f"/sessions/{key}/queue"))["items"] == []
        await ada.change("DELETE", f"/sessions/{key}")
    assert both.counts == [0, 0]


async def test_a_command_runs_where_its_session_is(both: Workers, ada: Operator) -> None:
    for key in await named(both, 1):
        asked = await ada.get("/commands", command=f"client/{key}/?connectionState")
        assert asked["value"] == "UNDEF"
        subject = key.partition("/")[0]
        listed = await ada.get("/commands", command=f"client/{subject}/?sessions")
        assert listed["value"] == key
        await ada.change("POST", "/commands", {"command": f"client/{key}/?killSession"})
    assert both.counts == [0, 0]


async def test_a_command_reads_the_queue_of_a_subject_wherever_it_is(
    both: Workers, ada: Operator
) -> None:
    ann = both.person(0)
    await ann.handshake()
    for subject in (both.subject_of(shard) for shard in (0, 1)):
        to = {"destinations": [{"name": subject, "forceQueuing": True}], "content": 1}
        assert (await ann.reply("/service/ptp", data=to))["successful"]
        command = {"command": f"client/{subject}/?subjectQueueNumMsgs"}
        home = both.home_of(subject)
        for found in (
            await ada.change("POST", "/commands", command),
            await ada.get("/commands", **command),
        ):
            assert (found["value"], found["shard"]) == ("1", home)
        nobody = {"command": f"client/{subject}x/?subjectQueueNumMsgs"}
        assert (await ada.change("POST", "/commands", nobody))["value"] == "0"


async def test_a_session_that_no_shard_has_is_unknown(ada: Operator) -> None:
    status, found = await ada.ask("GET", "/sessions/nobody/1")
    assert (status, found["error"]["code"]) == (404, "user.notConnected")
    assert (await ada.ask("DELETE", "/sessions/nobody/1"))[0] == 404


async def test_a_change_is_audited_once_by_the_shard_that_has_made_it(
    both: Workers, ada: Operator
) -> None:
    [first, second] = await named(both, 1)
    for key in (first, second):
        await ada.change("DELETE", f"/sessions/{key}")
    entries = await ada.audited(2)
    assert [(each["target"], each["who"]) for each in entries] == [
        (second, "operator/ada"),
        (first, "operator/ada"),
    ]


async def test_a_channel_is_counted_held_and_released_in_all_shards(
    both: Workers, ada: Operator
) -> None:
    await named(both, 1)
    [news] = [each for each in (await ada.get("/channels"))["items"] if each["name"] == "/news"]
    assert (news["subscribers"], news["held"]) == (2, False)
    held = await ada.change("PUT", "/held-channels", {"channel": "/news", "reason": "why"})
    assert held["unanswered"] == []
    assert held["unstored"] is False
    assert ["/news" in each.bayeux.state.guard.held for each in both.servers] == [True, True]
    [shown] = (await ada.get("/held-channels"))["items"]
    assert shown["reason"] == "why"
    assert (await ada.get("/now"))["held_channels"]["items"] == [shown]
    assert (await ada.get("/figures"))["channels_held_back"] == 1
    released = await ada.change("DELETE", "/held-channels", channel="/news")
    assert (released["channel"], released["unstored"]) == ("/news", False)
    assert ["/news" in each.bayeux.state.guard.held for each in both.servers] == [False, False]
    entries = await ada.audited(2)
    assert [each["action"] for each in entries] == ["channel.release", "channel.hold"]
    for sort in ("action", "-action", "time", "-who"):
        entries = (await ada.get("/audit", sort=sort))["items"]
        assert len(entries) == 2, "what all shards did is one entry in any order"
    assert [each["action"] for each in entries] == ["channel.release", "channel.hold"]


async def test_figures_and_now_count_the_entries_of_all_shards(
    both: Workers, ada: Operator
) -> None:
    await named(both)
    publisher = both.person(1)
    await publisher.handshake()
    await publisher.reply("/news", data=1)
    await until_async(lambda: waiting(ada, 4))
    now = await ada.get("/now")
    assert (now["waiting"], now["channels"]["items"][0]["receivers"]) == (4, 4)
    assert now["sentence"].startswith("4 messages wait")
    [one] = (await ada.get("/now", limit=1))["receivers"]["items"]
    assert one["waiting"] == 1


async def waiting(ada: Operator, count: int) -> bool:
    return bool((await ada.get("/figures"))["waiting"] == count)


async def test_ended_sessions_are_at_most_as_many_as_the_request_allows(
    both: Workers, ada: Operator
) -> None:
    await named(both)
    body = {"filter": {"prefix": "user"}, "limit": 3, "dry_run": True}
    planned = await ada.change("POST", "/sessions/end", body)
    assert (planned["matched"], planned["ended"], planned["dry_run"]) == (4, 0, True)
    ended = await ada.change("POST", "/sessions/end", {**body, "dry_run": False})
    assert (ended["ended"], sum(both.counts)) == (3, 1)


async def test_a_shard_that_does_not_answer_is_named(both: Workers, ada: Operator) -> None:
    keys = await named(both, 1)
    await both.hide(1)
    _, page = await ada.ask("GET", "/sessions")
    assert page["unanswered"] == [{"shard": 1, "reason": "it cannot be reached"}]
    mine = [key for key in keys if both.home_of(key.partition("/")[0]) == 0]
    assert [each["key"] for each in page["items"]] == mine
    for method in ("GET", "DELETE"):
        status, found = await ada.ask(method, "/sessions/nobody/1")
        assert status == 503
        assert found["error"]["message"].startswith("shard 1: it cannot be reached")


async def test_each_worker_has_a_row(both: Workers, ada: Operator) -> None:
    await named(both)
    first, second = (await ada.get("/shards"))["items"]
    for shard, each in enumerate((first, second)):
        assert (each["shard"], each["state"], each["store"]) == (shard, "serving", "available")
        assert (each["sessions"], each["links"], each["restarts"]) == (2, 1, 0)
        assert each["pid"] == os.getpid()
    now = await ada.get("/now")
    assert [each["shard"] for each in now["shards"]["items"]] == [0, 1]
    assert not now["sentence"].startswith("shard")


async def test_a_worker_that_is_away_has_a_row_of_what_others_know(
    both: Workers, ada: Operator
) -> None:
    await both.hide(1)
    _, found = await ada.ask("GET", "/shards")
    _, second = found["items"]
    assert (second["state"], second["sessions"], second["store"]) == ("away", None, None)
    _, now = await ada.ask("GET", "/now")
    assert now["sentence"].startswith("shard 1 cannot be reached")
    async with ada.http.get("/readyz", params={"all": "1"}) as response:
        assert (response.status, "shard 1 has been away for" in await response.text()) == (
            200,
            True,
        )
    async with ada.http.get("/readyz") as response:
        assert (response.status, await response.text()) == (200, "ready\n")


async def test_a_reader_changes_nothing(both: Workers, tmp_path: Path) -> None:
    async with operator(both, tmp_path, token="reader-token") as reader:
        assert (await reader.get("/sessions"))["items"] == []
        status, _ = await reader.ask("PUT", "/held-channels", json={"channel": "/news"})
        assert status == 403
        status, _ = await reader.ask("POST", "/dead-letters/import", data=b"")
        assert status == 403


async def test_metrics_of_all_shards_are_on_one_page(both: Workers, ada: Operator) -> None:
    lines = (await page_of_all(ada, "/metrics")).splitlines()
    published = [each for each in lines if each.startswith("holdfast_messages_published_total")]
    assert published == [
        f'holdfast_messages_published_total{{shard="{shard}"}} 0.0' for shard in (0, 1)
    ]
    assert lines.count("# TYPE holdfast_messages_published_total counter") == 1
    assert 'holdfast_entries_settled_total{shard="1",outcome="acked"} 0.0' in lines
    assert 'holdfast_shard_answers{shard="1"} 1.0' in lines


async def page_of_all(ada: Operator, path: str, *, is_openmetrics: bool = False) -> str:
    """A page of metrics with those of both shards: a loaded machine may be late."""
    kind = "application/openmetrics-text" if is_openmetrics else "text/plain"
    text = ""
    for _ in range(20):
        async with ada.http.get(path, headers={"Accept": kind}) as response:
            assert response.content_type == kind
            text = await response.text()
        if 'holdfast_shard_answers{shard="1"} 1.0' in text:
            return text
    pytest.fail(text)


@pytest.mark.parametrize("path", ["/metrics", "/admin/metrics"])
async def test_openmetrics_of_all_shards_is_one_page_and_names_messages_to_operators(
    both: Workers, ada: Operator, path: str
) -> None:
    person = both.person(1)
    await person.handshake()
    await person.reply("/meta/subscribe", subscription="/news")
    await person.reply("/news", data=1)
    await person.reply("/meta/connect", connectionType="long-polling")
    text = await page_of_all(ada, path, is_openmetrics=True)
    families = {family.name: family.samples for family in read_openmetrics(text)}
    answers = [(each.labels, each.value) for each in families["holdfast_shard_answers"]]
    assert answers == [({"shard": "0"}, 1.0), ({"shard": "1"}, 1.0)]
    turns = families["holdfast_turn_seconds"]
    assert {each.labels["shard"] for each in turns if each.value} == {"0", "1"}
    calls = families["holdfast_store_call_seconds"]
    assert {each.labels["shard"] for each in calls if each.value} == {"0", "1"}
    examples = [each.exemplar for name in families for each in families[name] if each.exemplar]
    assert bool(examples) == (path == "/admin/metrics")
    assert text.count("# EOF") == 1


async def test_the_sum_of_all_rates_does_not_jump_while_a_worker_is_missing(
    both: Workers, ada: Operator
) -> None:
    """Each series rises by itself, as `sum(rate(...))` has it; a gap in one is no step."""
    publishers = [both.person(door) for door in (0, 1)]
    for each in publishers:
        await each.handshake()
    pages = []
    for is_missing in (False, False, True, False):
        for publisher in publishers:
            for n in range(5):
                assert (await publisher.reply("/news", data=n))["successful"]
        if is_missing:
            await both.hide(1)
        pages.append(await published(ada, missing=is_missing))
        if is_missing:
            await both.show(1)
    assert [sorted(page) for page in pages] == [["0", "1"], ["0", "1"], ["0"], ["0", "1"]]
    assert pages[-1] == {"0": 20.0, "1": 20.0}
    rises = [
        later[shard] - earlier[shard]
        for shard in ("0", "1")
        for earlier, later in pairwise([page for page in pages if shard in page])
    ]
    assert sum(rises) == 30.0
    assert min(rises) >= 0.0


async def published(ada: Operator, *, missing: bool) -> dict[str, float]:
    """How many messages each shard on the page has published; one that is missing says so."""
    text = ""
    for _ in range(20):
        async with ada.http.get("/metrics") as response:
            text = await response.text()
        answers = dict(re.findall(r'holdfast_shard_answers{shard="(.)"} (.*)', text))
        # A loaded machine may be late.
        if answers == {"0": "1.0", "1": "0.0" if missing else "1.0"}:
            found = re.findall(r'holdfast_messages_published_total{shard="(.)"} (.*)', text)
            return {shard: float(count) for shard, count in found}
    pytest.fail(text)


@pytest.fixture
async def letters(both: Workers, ada: Operator) -> list[str]:
    """The receivers of dead letters, two in each shard."""
    keys = await named(both)
    publisher = both.person(1)
    await publisher.handshake()
    await publisher.reply("/news", data=1)
    await until_async(lambda: waiting(ada, 4))
    await ada.change("POST", "/sessions/end", {"filter": {"prefix": "user"}, "dry_run": False})
    return keys


async def test_dead_letters_of_all_shards_are_one_list_and_one_group(
    letters: list[str], ada: Operator
) -> None:
    first = await ada.get("/dead-letters", limit=3)
    rest = await ada.get("/dead-letters", limit=3, cursor=first["cursor"])
    found = [*first["items"], *rest["items"]]
    assert sorted(each["receiver"] for each in found) == letters
    ids = [each["id"] for each in found]
    assert ids == sorted(ids, reverse=True)
    for id in ids:
        assert (await ada.get(f"/dead-letters/{id}"))["id"] == id
    groups = await ada.get("/dead-letters/groups")
    [group] = groups["items"]
    assert (group["count"], group["receivers"], group["sample"]) == (4, 4, ids[0])
    assert (groups["total"], groups["cursor"], sum(group["hours"])) == (4, None, 4)
    [kind] = (await ada.get("/dead-letters/groups", by="code"))["items"]
    assert (kind["count"], kind["channel"], kind["fingerprint"]) == (4, "/**", None)
    # No shard has a subscriber any more.
    [news] = (await ada.get("/channels", sort="-letters", limit=1))["items"]
    assert (news["name"], news["subscribers"], news["letters"]) == ("/news", 0, 4)
    path = f"/dead-letters/groups/{group['fingerprint']}"
    await ada.change("PUT", f"{path}/remark", {"assignee": "ada"})
    [group] = (await ada.get("/dead-letters/groups"))["items"]
    assert group["remark"]["assignee"] == "ada"
    trace = await ada.get(f"/messages/{found[0]['message']}")
    assert sorted(each["receiver"] for each in trace["letters"]) == letters


async def test_letters_of_all_shards_are_exported_replayed_and_purged(
    letters: list[str], ada: Operator
) -> None:
    async with ada.http.get(f"{API}/dead-letters/export") as response:
        lines = [orjson.loads(each) for each in (await response.read()).splitlines()]
    assert len(lines) == len(letters)
    planned = await ada.change("POST", "/replays", {"all": True, "dry_run": True})
    assert (planned["id"], planned["total"]) == (None, 4)
    begun = await ada.change("POST", "/replays", {"all": True, "dry_run": False})
    [shown] = (await ada.get("/replays"))["items"]
    assert shown["id"] == begun["id"]
    await until_async(lambda: is_over(ada, begun["id"]))
    over = await ada.get(f"/replays/{begun['id']}")
    assert over["total"] == 4
    purged = await ada.change("POST", "/dead-letters/purge", {"all": True, "dry_run": False})
    assert purged["purged"] == 4
    assert (await ada.get("/dead-letters"))["items"] == []


async def refused(both: Workers, ada: Operator) -> list[str]:
    """Publish two messages that a session of each shard refuses; their keys."""
    publisher, keys = both.person(1), []
    await publisher.handshake()
    for shard in (0, 1):
        keys.append(f"{both.subject_of(shard, 'refuser')}/1")
        refuser = both.person(0)
        await refuser.handshake(keys[-1])
        await refuser.reply("/meta/subscribe", subscription=f"/orders/{shard}")
        for order in (1, 2):
            await publisher.reply(f"/orders/{shard}", data=f"{shard}:{order}")
    await until_async(lambda: waiting(ada, 4))
    await ada.change("POST", "/sessions/end", {"filter": {"prefix": "refuser"}, "dry_run": False})
    return keys


async def replayed(ada: Operator, **options: Any) -> Json:
    """Replay all letters to their end."""
    body = {"all": True, "options": {"canary": 1, **options}}
    begun = await ada.change("POST", "/replays", {**body, "dry_run": False})
    await until_async(lambda: is_over(ada, begun["id"]))
    return await ada.get(f"/replays/{begun['id']}")


async def events(person: Person, count: int) -> list[Json]:
    """Get so many events, and acknowledge them all."""
    found: list[Json] = []
    ack = 0
    while len(found) < count:
        *got, reply = await person.connect(500, ack=ack)
        found += got
        ack = reply["ext"]["ack"]
    await person.connect(0, ack=ack)
    return found


@pytest.mark.parametrize("shard", [0, 1])
async def test_a_session_gets_the_letters_of_all_shards_that_are_replayed_to_it(
    both: Workers, ada: Operator, shard: int
) -> None:
    await refused(both, ada)
    joe, key = both.person(0), f"{both.subject_of(shard, 'joe')}/1"
    await joe.handshake(key)
    planned = await ada.change(
        "POST", "/replays", {"all": True, "options": {"to": key}, "dry_run": True}
    )
    assert (planned["total"], planned["skips"], planned["away"]) == (4, {}, {})
    reading = asyncio.create_task(events(joe, 4))
    over = await replayed(ada, to=key)
    assert [each["data"] for each in await reading] == ["0:1", "0:2", "1:1", "1:2"]
    assert (over["state"], over["total"], over["sent"], over["skips"]) == ("done", 4, 4, {})
    assert (over["acked"], over["died_again"]) == (4, 0)
    found = (await ada.get("/dead-letters"))["items"]
    assert [each["state"] for each in found] == ["replayed"] * 4


async def test_letters_stay_where_they_are_if_no_shard_has_the_session(
    both: Workers, ada: Operator
) -> None:
    keys = await refused(both, ada)
    for shard in (0, 1):
        over = await replayed(ada, to=f"{both.subject_of(shard, 'nobody')}/1")
        assert (over["sent"], over["skips"]) == (0, {"receiver": 4})
    found = (await ada.get("/dead-letters"))["items"]
    assert {(each["state"], each["receiver"]) for each in found} == {("new", key) for key in keys}


async def test_each_imported_letter_goes_to_the_shard_that_has_its_receiver(
    both: Workers, letters: list[str], tmp_path: Path, ada: Operator
) -> None:
    async with ada.http.get(f"{API}/dead-letters/export") as response:
        lines = (await response.read()).splitlines()
    await ada.change("POST", "/dead-letters/purge", {"all": True, "dry_run": False})
    # Two lines that are no letters, in the midst.
    body = b"\n".join([*lines[:2], b"{}", *lines[2:], b"nonsense"])
    async with operator(both, tmp_path, door=1) as bob:
        done = await imported(bob, body)
        assert (done["imported"], done["repeated"], done["refused"]) == (4, 0, 2)
        assert [each["line"] for each in done["refusals"]] == [3, 6]
        again = await imported(bob, body)
        assert (again["imported"], again["repeated"]) == (0, 4)
    page = await ada.get("/dead-letters")
    assert sorted(each["receiver"] for each in page["items"]) == letters
    for each in page["items"]:
        _, found = await ada.ask("GET", f"/dead-letters/{each['id']}")
        assert found["shard"] == both.home_of(each["receiver"].partition("/")[0])


async def test_an_empty_import_imports_nothing(ada: Operator) -> None:
    done = await imported(ada, b"")
    assert (done["imported"], done["refused"], done["unanswered"]) == (0, 0, [])


async def test_an_import_while_a_shard_is_away_imports_nothing(
    both: Workers, letters: list[str], ada: Operator
) -> None:
    async with ada.http.get(f"{API}/dead-letters/export") as response:
        body = await response.read()
    await ada.change("POST", "/dead-letters/purge", {"all": True, "dry_run": False})
    await both.hide(1)
    status, found = await ada.ask("POST", "/dead-letters/import", data=body, headers=LINES)
    assert (status, found["error"]["message"]) == (
        503,
        "shard 1: it cannot be reached. Nothing was imported",
    )
    assert (await ada.ask("GET", "/dead-letters"))[1]["items"] == []


async def imported(operator: Operator, body: bytes) -> Json:
    status, found = await operator.ask("POST", "/dead-letters/import", data=body, headers=LINES)
    assert status == 200, found
    return found


async def is_over(ada: Operator, id: str) -> bool:
    return bool((await ada.get(f"/replays/{id}"))["over"])


async def test_an_export_is_refused_without_one_of_the_shards(both: Workers, ada: Operator) -> None:
    await both.hide(1)
    status, found = await ada.ask("GET", "/dead-letters/export")
    assert status == 503
    assert found["error"]["message"].endswith("An export has all letters or none")


async def test_an_export_is_refused_if_a_shard_ends_after_all_have_answered(
    both: Workers,
    ada: Operator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    all_there = rules.all_there

    async def answered_and_ended(*of: Any) -> None:
        await all_there(*of)
        await both.hide(1)

    monkeypatch.setattr(rules, "all_there", answered_and_ended)
    status, found = await ada.ask("GET", "/dead-letters/export")
    assert status == 503
    assert found["error"]["message"] == "shard 1: it cannot be reached"
    assert [each for each in caplog.records if each.exc_info] == []


async def test_live_figures_are_those_of_all_shards(both: Workers, ada: Operator) -> None:
    await named(both)
    watcher = both.person(1)
    secret = ada.http.headers["Authorization"].removeprefix("Bearer ")
    await watcher.handshake(token=secret)
    await watcher.reply("/meta/subscribe", subscription="/sys/figures")
    ack = 0

    async def are_of_both() -> bool:
        nonlocal ack
        *events, reply = await watcher.connect(1000, ack=ack)
        ack = reply.get("ext", {}).get("ack", ack)
        figures = [each["data"] for each in events if each["channel"] == "/sys/figures"]
        # A reading may be a second old, and a loaded machine late.
        return any(each["sessions"] >= 4 and not each["unanswered"] for each in figures)

    await until_async(are_of_both)


READING = [
    *("/about", "/figures", "/now", "/now/tables", "/audit", "/upgrade", "/channels", "/topics"),
    *("/held-channels", "/sessions", "/subjects", "/subjects/ada/queue", "/work-queues"),
    *("/work-queue?channel=/jobs", "/work-queue/receivers?channel=/jobs", "/delayed"),
    *("/dead-letters", "/dead-letters/groups", "/replays", "/openapi.json"),
    "/messages/holdfast-1763000000000000000",
]


async def test_what_only_reads_is_answered_with_nothing_there(ada: Operator) -> None:
    for path in READING:
        assert await ada.get(path), path
