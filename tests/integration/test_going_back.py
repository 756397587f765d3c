"""A store goes from a former release to this one and back, until the upgrade is finished."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose.cannot_start import CannotStart
from holdfast.offline.reshard import Plan, reshard
from holdfast.offline.tenure import holding
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT
from tests.integration.former_releases import LAYOUTS, FormerServer, code_of
from tests.integration.test_killed_point_to_point import Client, Json
from tests.integration.test_killed_requests import Person, publish
from tests.serving import Server
from tests.store.servers import ValkeyServer

ASK = "/data/ask"
OLDER = [release for release, layout in LAYOUTS.items() if layout < LAYOUT]
SETTINGS: Json = {
    "node": "n",
    "channels": {
        "/kept/*": {"history": 9, "durable": True},
        "/data/*": {"durable": True},
        "/jobs/*": {"work_queue": True, "durable": True},
    },
}


@pytest.fixture(scope="module", params=LAYOUTS)
def former(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    with code_of(request.param) as code:
        yield request.param, code


@dataclass
class Story:
    """What clients did at one server after the other, and what they must find at the next."""

    visits: int = 0
    ret: str | bool = True
    # Publish keys with the ids of their messages.
    keys: dict[str, str] = field(default_factory=dict)
    # What joe has in flight or waiting.
    waiting: list[object] = field(default_factory=list)

    # Delayed messages, and those that joe got.
    delayed: list[object] = field(default_factory=list)
    late: list[object] = field(default_factory=list)
    # Where they are now.
    server: Server | FormerServer = field(init=False)

    def go_on(self, server: Server | FormerServer, *, is_new: bool) -> None:
        self.visits += 1
        self.server = server
        joe = Person(server, "joe/1", request=self.ret)
        assert self.ret in (True, joe.ret)
        self.ret = joe.ret
        ann = Person(server, "ann/1", request=True)
        if self.visits == 1:
            for client, channels in ((joe, ["/data/a", "/late"]), (ann, ["/data/a", ASK])):
                for channel in channels:
                    client.send("/meta/subscribe", subscription=channel)
        else:
            self._is_found(joe, ann)
            if is_new:
                self._is_delayed_until_now(joe)
        if is_new:
            # Only this release knows the option and the delay.
            silent = {"delivery": {"responds": False}}
            joe.send("/meta/subscribe", subscription="/data/silent", ext=silent)
        self._leave(joe, ann)
        if is_new:
            late = {"delay": 1500, "persistent": True}
            publish(ann, "/late", f"late {self.visits}", delivery=late)
            self.delayed.append(f"late {self.visits}")

    def _is_found(self, joe: Person, ann: Person) -> None:
        """Check that both have what they had, once and in order, and answer the request."""
        (first, *rest) = joe.events_soon()
        verdict = {"seq": first["ext"]["delivery"]["seq"], "errorCode": "user.update.bad"}
        # It refuses the first message, and acknowledges the others.
        heard = [first, *rest, *joe.events(delivery={"verdicts": [verdict]}), *rest_of(joe)]
        assert [each["data"] for each in heard if each["channel"] != "/late"] == self.waiting
        *numbers, request = all_of(ann)
        assert [each["data"] for each in numbers] == self.waiting[:3]
        assert request["data"] == f"ask {self.visits - 1}"
        publish(ann, request["ext"]["replyTo"], f"reply {self.visits - 1}")
        heard += (replies := all_of(joe))
        assert [each["data"] for each in replies if each["channel"] != "/late"] == [
            f"reply {self.visits - 1}"
        ]
        self.late += [each["data"] for each in heard if each["channel"] == "/late"]

    def _is_delayed_until_now(self, joe: Person) -> None:
        """Check that joe gets each delayed message once, at a server that knows about delays."""
        while len(self.late) < len(self.delayed):
            self.late += [each["data"] for each in all_of(joe)]
        assert self.late == self.delayed

    def _leave(self, joe: Person, ann: Person) -> None:
        """Publish with old keys and a new one, and let everything wait for the next server."""
        bob, visit = Person(self.server, "bob/1", request=True), self.visits
        for key, id in self.keys.items():
            repeat = publish(bob, "/data/a", "!", delivery={"key": key})
            assert repeat["ext"]["delivery"]["id"] == id
        reply = publish(bob, "/data/b", "once", delivery={"key": f"key {visit}"})
        self.keys[f"key {visit}"] = reply["ext"]["delivery"]["id"]
        self.waiting = [f"{visit}-{n}" for n in range(3)]
        for data in self.waiting:
            publish(bob, "/data/a", data)
        reply_to = f"{self.ret}/{4000000 + visit}"
        publish(joe, ASK, f"ask {visit}", replyTo=reply_to, timeout=120_000)
        # In flight, and not acknowledged. On a busy machine, a delayed one may be among them.
        heard = joe.events()
        assert [each["data"] for each in heard if each["channel"] != "/late"] == self.waiting
        if visit > 1:
            publish(bob, "/data/silent", f"{visit}-silent")
            self.waiting.append(f"{visit}-silent")
        publish(bob, "/jobs/a", visit)
        publish(bob, "/kept/a", visit)
        guest = Client(self.server)
        answer = guest.send("/meta/subscribe", subscription="/kept/a", ext=HISTORY)
        assert [each["data"] for each in answer if "data" in each] == [*range(1, visit + 1)]


def all_of(person: Person) -> list[Json]:
    """The events that arrive now."""
    return [*person.events_soon(), *rest_of(person)]


def rest_of(person: Person) -> list[Json]:
    """The events of all connects until one gets none. Each acknowledges those before."""
    found: list[Json] = []
    while events := person.events():
        found += events
    return found


HISTORY = {"delivery": {"history": {"numEntries": -1, "newestFirst": False}}}


@contextmanager
def ended(server: Server | FormerServer) -> Iterator[Server | FormerServer]:
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.history
@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_killed", [False, True])
def test_clients_find_everything_whichever_of_both_releases_serves_them(
    former: tuple[str, Path], is_killed: bool
) -> None:
    story, (release, code) = Story(), former
    with ValkeyServer() as valkey:
        settings = {**SETTINGS, "redis": valkey.url}
        for is_new in (False, True, False, True, True):
            with ended(Server(settings) if is_new else FormerServer(code, settings)) as server:
                story.go_on(server, is_new=is_new)
                if is_killed:
                    server.process.kill()
        assert story.late == ["late 2", "late 4"]
        (dead,) = valkey.ask("KEYS", "*dead:all")
        assert valkey.ask("ZCARD", dead) == story.visits - 1
        layout = valkey.ask("HGET", RedisKeys("holdfast").meta, "version")
        assert int(layout) == LAYOUTS[release]


@pytest.mark.history
@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("former", OLDER, indirect=True)
def test_a_former_release_refuses_the_store_when_the_upgrade_is_finished(
    former: tuple[str, Path],
) -> None:
    story, (release, code) = Story(), former
    with ValkeyServer() as valkey:
        settings = {**SETTINGS, "redis": valkey.url}
        with ended(FormerServer(code, settings)) as server:
            story.go_on(server, is_new=False)
        with ended(Server(settings)) as server:
            story.go_on(server, is_new=True)
            assert operator(server, "/upgrade")["layout"] == LAYOUTS[release]
            assert operator(server, "/upgrade/finish", {})["finished"]
            story.go_on(server, is_new=True)
        with pytest.raises(RuntimeError, match="the store was written by another version"):
            FormerServer(code, settings)
        with ended(Server(settings)) as server:
            story.go_on(server, is_new=True)


@pytest.mark.history
@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_former_release_refuses_a_store_that_is_divided_among_workers(
    former: tuple[str, Path], tmp_path: Path
) -> None:
    _, code = former
    with ValkeyServer() as valkey:
        settings = {"node": "n", "redis": valkey.url, "chat": False}
        with ended(Server(settings)) as server:
            Person(server, "joe/1", request=True)
            assert server.stop() == 0
        given: Any = {**settings, "data": tmp_path}
        async with holding(Settings(**given)) as tenure:
            assert (await reshard(tenure, Settings(**given), Plan(2))).has_moved
        before = valkey.ask("HGETALL", RedisKeys("holdfast").meta)
        # One that knows workers says how many there are.
        with pytest.raises(RuntimeError, match=r"written by another version|this deployment has 2"):
            FormerServer(code, settings)
        assert valkey.ask("HGETALL", RedisKeys("holdfast").meta) == before


@pytest.mark.history
@pytest.mark.slow
@pytest.mark.parametrize("former", OLDER, indirect=True)
def test_a_store_that_former_releases_read_is_not_divided(
    former: tuple[str, Path], tmp_path: Path
) -> None:
    _, code = former
    with ValkeyServer() as valkey:
        settings = {"node": "n", "redis": valkey.url}
        with ended(FormerServer(code, settings)):
            pass
        with ended(Server(settings)):
            pass
        given: Any = {**settings, "data": tmp_path, "chat": False}

        async def divide() -> None:
            async with holding(Settings(**given)) as tenure:
                await reshard(tenure, Settings(**given), Plan(2))

        with pytest.raises(CannotStart, match="upgrade --finish"):
            asyncio.run(divide())
        with ended(FormerServer(code, settings)):
            pass


def operator(server: Server | FormerServer, path: str, body: Json | None = None) -> Any:
    """Ask the administration, with a body by POST."""
    token = (server.data / "admin-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/admin/api/v1{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)
