"""What scripts publish without a session is spread over all workers."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from holdfast.web.forwarding import parking
from tests.store.store_process import until
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person, passwords

ADA = "Basic YWRhOmNvcnJlY3QgaG9yc2U="


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path) as both:
        yield both


def message(channel: str, data: Any = None, **delivery: Any) -> Json:
    return {"channel": channel, "data": data, "ext": {"delivery": delivery}}


async def publish(script: Person, *messages: Json) -> list[Json]:
    async with script.http.post("/publish", json=[*messages]) as response:
        results: list[Json] = await response.json()
        return results


def shard_of(result: Json) -> int:
    """The shard that accepted a message: the last three digits of its id name it."""
    assert result["successful"], result
    return int(result["ext"]["delivery"]["id"][-3:])


@pytest.mark.parametrize("count", [2, 3])
async def test_channels_are_spread_evenly(tmp_path: Path, count: int) -> None:
    async with workers(tmp_path, count) as crowd:
        results = await publish(crowd.person(0), *(message(f"/rooms/{n}") for n in range(100)))
        shares = Counter(map(shard_of, results))
    for shard in range(count):
        assert 0.8 <= shares[shard] / (100 / count) <= 1.2, shares


async def test_many_durable_messages_are_all_published_by_all_workers_in_order(
    both: Workers,
) -> None:
    ada = both.person(0)
    ada.wants = {"ack": False}
    await ada.handshake()
    assert (await ada.reply("/meta/subscribe", subscription="/rooms/*"))["successful"]
    many = [message(f"/rooms/{n % 4}", n, persistent=True) for n in range(800)]
    assert {*map(shard_of, await publish(both.person(1), *many))} == {0, 1}
    heard: dict[str, list[int]] = {f"/rooms/{n}": [] for n in range(4)}
    while sum(map(len, heard.values())) < len(many):
        for event in (await ada.connect(100))[:-1]:
            heard[event["channel"]].append(event["data"])
    assert list(heard.values()) == [[*range(n, 800, 4)] for n in range(4)]


async def test_what_an_address_publishes_on_a_channel_keeps_its_order_over_connections(
    both: Workers,
) -> None:
    ada = both.person(0)
    ada.wants = {"ack": False}
    await ada.handshake()
    assert (await ada.reply("/meta/subscribe", subscription="/rooms/*"))["successful"]
    shards: dict[str, set[int]] = {}
    for n in range(60):
        channel = f"/rooms/{n % 6}"
        # Another connection each time, to either door.
        [result] = await publish(both.person(n % 2), message(channel, n))
        shards.setdefault(channel, set()).add(shard_of(result))
    assert [len(each) for each in shards.values()] == [1] * 6
    assert set().union(*shards.values()) == {0, 1}
    heard: dict[str, list[int]] = {}
    while sum(map(len, heard.values())) < 60:
        for event in await ada.connect(5000):
            if event["channel"].startswith("/rooms"):
                heard.setdefault(event["channel"], []).append(event["data"])
    assert heard == {f"/rooms/{n}": [*range(n, 60, 6)] for n in range(6)}


async def test_results_come_in_the_order_of_the_request(both: Workers) -> None:
    sent = [{**message(f"/rooms/{n % 7}", n), "id": str(n)} for n in range(50)]
    sent[3] = {"channel": "/meta/disconnect", "id": "3"}
    sent[4] = {"channel": 4, "id": "4"}
    results = await publish(both.person(1), *sent)
    assert [each["id"] for each in results] == [str(n) for n in range(50)]
    assert [n for n, each in enumerate(results) if not each["successful"]] == [3, 4]
    assert {shard_of(each) for each in results if each["successful"]} == {0, 1}


async def test_a_subject_is_spread_too_and_leaves_no_session(tmp_path: Path) -> None:
    async with workers(tmp_path, login_passwords=passwords(tmp_path)) as both:
        eve = both.person(1)
        eve.wants = {"ack": False}
        await eve.handshake(user="ada", password="correct horse")
        await eve.reply("/meta/subscribe", subscription="/rooms/*")
        script = both.person(0, Authorization=ADA)
        results = await publish(script, *(message(f"/rooms/{n}", n) for n in range(20)))
        assert {shard_of(each) for each in results} == {0, 1}
        events: list[Json] = []
        while len(events) < 20:
            found = await eve.connect(5000)
            events += [each for each in found if each["channel"].startswith("/rooms")]
        senders = {each["ext"]["delivery"]["sender"].split("/")[1] for each in events}
        assert senders == {"ada"}
        home = both.home_of("ada")
        assert [len(both.sessions(home)), len(both.sessions(1 - home))] == [1, 0]


async def test_a_repeat_of_a_publish_key_finds_its_first_reply_whatever_the_channel(
    tmp_path: Path,
) -> None:
    async with workers(tmp_path, login_passwords=passwords(tmp_path)) as both:
        home = both.home_of("ada")
        for n in range(8):
            keyed = message(f"/rooms/{n}", n, persistent=True, key=f"order {n}")
            [first] = await publish(both.person(0, Authorization=ADA), keyed)
            assert shard_of(first) == home
            # The others of its channel stay behind it, those of other channels need not.
            others = [message(f"/elsewhere/{other}") for other in range(8)]
            script = both.person(1, Authorization=ADA)
            later = message(f"/rooms/{n}", "later")
            [again, later, *elsewhere] = await publish(script, keyed, later, *others)
            assert again["ext"]["delivery"]["id"] == first["ext"]["delivery"]["id"]
            assert shard_of(later) == home
            assert {shard_of(each) for each in elsewhere} == {0, 1}


@pytest.mark.parametrize("login", [True, False])
async def test_spread_publishes_are_within_the_budget_of_their_sender(
    tmp_path: Path, login: bool
) -> None:
    given: Json = {"login_passwords": passwords(tmp_path)} if login else {}
    async with workers(
        tmp_path, budget_publishes=2, trusted_proxies=["127.0.0.1"], **given
    ) as both:
        accepted: Counter[int] = Counter()
        begun = monotonic()
        for n in range(80):
            # The subject sends from many addresses.
            address = f"192.0.2.{n + 1 if login else 1}"
            proxied = {"X-Forwarded-For": address} | ({"Authorization": ADA} if login else {})
            [result] = await publish(both.person(n % 2, **proxied), message(f"/rooms/{n}"))
            if result["successful"]:
                accepted[shard_of(result)] += 1
            else:
                assert result["error"] == "429:publishes:budget_exceeded"
        # Each worker has a half of ten seconds' worth, and admits one more each second.
        most = 11 + monotonic() - begun
        assert all(10 <= accepted[shard] <= most for shard in (0, 1)), accepted


async def test_the_other_sessions_of_a_subject_have_its_whole_budget(tmp_path: Path) -> None:
    given: Json = {"login_passwords": passwords(tmp_path), "trusted_proxies": ["127.0.0.1"]}
    async with workers(tmp_path, budget_publishes=2, **given) as both:
        addresses = iter(range(1, 250))

        def proxied() -> dict[str, str]:
            return {"X-Forwarded-For": f"192.0.2.{next(addresses)}", "Authorization": ADA}

        away = 1 - both.home_of("ada")
        for n in range(40):
            [result] = await publish(both.person(0, **proxied()), message(f"/rooms/{n}"))
            if result["successful"] and shard_of(result) == away:
                break
        # An address has its part, too.
        for _ in range(2):
            ada = both.person(0, **proxied())
            await ada.handshake(user="ada", password="correct horse")
            done = [(await ada.reply("/news", data=n))["successful"] for n in range(8)]
            assert done == [True] * 8


async def test_only_what_a_missing_worker_would_handle_is_refused(
    both: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "PATIENCE_S", 0.01)
    sent = [message(f"/rooms/{n}", n) for n in range(10)]
    script = both.person(0)
    shards = [*map(shard_of, await publish(script, *sent))]
    forwarding = both.servers[0].forwarding
    assert forwarding is not None
    path = forwarding._placement.link_of(1)
    path.rename(path.with_suffix(".hidden"))
    link = forwarding._far[1]._link
    assert link is not None
    link.abort()
    await until(lambda: not forwarding.is_linked)

    results = await publish(script, *sent)
    assert [each["successful"] for each in results] == [shard == 0 for shard in shards]
    assert {each.get("error") for each in results} == {None, "503::server_busy"}
    alone = [each for each, shard in zip(sent, shards, strict=True) if shard == 1]
    async with script.http.post("/publish", json=alone) as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
