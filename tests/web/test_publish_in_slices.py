"""A `POST /publish` of many messages goes to the store slice by slice, and leaves a prefix."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.compose import serving
from holdfast.web.publish_requests import PublishRequests, _passing_fault
from tests.web.people import Json, Person, settings
from tests.web.test_publish_requests import open_server, publish, subscriber

pytestmark = pytest.mark.untraced

_SIZE = "holdfast.web.publish_requests._MOST_UNANSWERED"


def durable(channel: str, number: object) -> Json:
    return {"channel": channel, "data": number, "ext": {"delivery": {"persistent": True}}}


def errors(results: list[Json]) -> list[str | None]:
    return [result.get("error") for result in results]


async def heard_by(person: Person, count: int) -> list[Any]:
    """The data of its next messages, each batch of which it acknowledges."""
    heard: list[Any] = []
    batch = 0
    while len(heard) < count:
        *events, reply = await person.connect(ack=batch)
        heard += [event["data"] for event in events]
        batch = reply["ext"]["ack"]
    return heard


async def test_more_messages_than_may_wait_are_all_published_in_order(tmp_path: Path) -> None:
    async with open_server(tmp_path) as home:
        ann = await subscriber(home, "/orders")
        status, results = await publish(
            home.person(), *(durable("/orders", number) for number in range(1000))
        )
        assert (status, errors(results)) == (200, [None] * 1000)
        assert await heard_by(ann, 1000) == list(range(1000))


async def test_others_of_the_address_are_served_between_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SIZE, 1)
    served, slices, publish_as = asyncio.Event(), count(), PublishRequests._publish_as

    async def publish_slowly(requests: PublishRequests, *given: Any) -> list[Json]:
        # However late the others have their turns, it is not over before.
        if next(slices) == 500:
            await served.wait()
        return await publish_as(requests, *given)

    monkeypatch.setattr(PublishRequests, "_publish_as", publish_slowly)
    async with open_server(tmp_path, publish_timeout=250_000) as home:
        many = asyncio.create_task(
            publish(home.person(), *(durable("/orders", number) for number in range(1000)))
        )
        async with asyncio.timeout(60):
            await subscriber(home, "/orders")
        assert not many.done()
        served.set()
        status, results = await many
        assert (status, errors(results)) == (200, [None] * 1000)


async def test_behind_a_503_the_rest_is_refused_alike_and_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SIZE, 2)
    async with open_server(tmp_path, max_topics=1, channels={"/a/*": {"topic": True}}) as home:
        ann = await subscriber(home, "/a/*")
        messages = [durable(f"/a/{name}", name) for name in (1, 1, 1, 2, 1, 1, 1)]
        status, results = await publish(home.person(), *messages)
        full = results[3]["error"]
        assert full.startswith("503:")
        assert (status, errors(results)) == (200, [None] * 3 + [full] * 4)
        events = [event for event in await ann.connect() if "data" in event]
        assert len(events) == 3


def test_what_is_not_tried_is_not_said_to_be_unknown() -> None:
    error = "503:communication.noConnection,unknown:store_unavailable"
    fault = _passing_fault([{"successful": True}, {"successful": False, "error": error}])
    assert fault is not None
    assert fault["error"] == "503:communication.noConnection:store_unavailable"


async def test_a_request_that_takes_too_long_is_published_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SIZE, 1)
    async with open_server(tmp_path, publish_timeout=1) as home:
        messages = [durable("/orders", number) for number in range(300)]
        status, results = await publish(home.person(), *messages)
        found = errors(results)
        done = found.count(None)
        assert 0 < done < 300
        assert found == [None] * done + ["503:publish_timeout:server_busy"] * (300 - done)
        assert status == 200


async def test_a_stop_leaves_a_prefix_and_closes_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SIZE, 1)
    body = orjson.dumps([durable("/orders", number) for number in range(3000)])
    async with serving(settings(tmp_path)) as url:
        ann, script = Person(url), Person(url)
        await ann.handshake()
        await ann.reply("/meta/subscribe", subscription="/orders")
        response = asyncio.create_task(script.http.post("/publish", data=body))
        while not any("data" in event for event in await ann.connect()):
            pass
    async with await response as answer:
        found = errors(await answer.json(content_type=None))
        done = found.count(None)
        assert 0 < done < 3000
        assert found == [None] * done + ["503::server_busy"] * (3000 - done)
        assert answer.headers["Connection"] == "close"
    await ann.http.close()
    await script.http.close()
