"""`python -m tests.chaos.hour --minutes 60`: three hosts in trouble, with clients of all kinds.

Everything of `HostDeeds` happens, one thing after the other. In the end, the books are compared: no
session with a name has lost what was acknowledged, heard it in another order, or begun anew.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any, TypeVar

from tests.chaos import own_network
from tests.chaos.host_deeds import HostDeeds
from tests.chaos.hosts import three_hosts, three_hosts_on_a_cluster
from tests.chaos.test_hosts import PEOPLE, Scene, scene_of
from tests.clients.deployment import Restart
from tests.clients.story import SUITES, Deed, Story

SETTINGS: dict[str, Any] = {
    "max_sessions_per_browser": -1,
    "max_queue": 100_000,
    # Clients of a busy machine may need long to come again.
    "max_interval": 120_000,
}
RATES = {"keeps a connection": 10.0, "connects each time": 5.0}
# Those of the nodes of a cluster, each of which can be cut off.
_FIRST_USER = 60_000
_STEP_LIMIT_S = 400.0
# What is said after the last thing has happened.
_END_S = 300.0
# A session of curl ends with its client id: it is too simple to begin again.
STOCK = {suite: [each for each in its if each["client"] != "curl"] for suite, its in SUITES.items()}
T = TypeVar("T")


class Hour:
    """Hosts whose loop runs in another thread than the stock clients are played in."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int, store: str) -> None:
        self._loop = loop
        self._random = Random(seed)
        self._store = store
        self._clients = AsyncExitStack()
        self._deeds: HostDeeds
        self._play: Scene
        self._urls: Iterator[str]
        self.happened: Counter[str] = Counter()

    def run(self, work: Coroutine[Any, Any, T], limit_s: float = _STEP_LIMIT_S) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(limit_s)

    async def set_up(self, home: Path, stack: AsyncExitStack) -> None:
        if self._store == "cluster":
            settings = {**SETTINGS, "durability": "replicas:1"}
            user = _FIRST_USER if own_network.is_own() else None
            made = three_hosts_on_a_cluster(
                home, have_clocks=True, first_user=user, is_as_promised=True, **settings
            )
            hosts, ways, cluster = await stack.enter_async_context(made)
        else:
            alone = three_hosts(home, have_clocks=True, **SETTINGS)
            hosts, ways = await stack.enter_async_context(alone)
            cluster = None
        self._urls = cycle(ways.urls)
        self._play = await self._clients.enter_async_context(scene_of(hosts, ways))
        self._deeds = HostDeeds(self._play, self._random, cluster)

    async def clients_have_heard_everything(self) -> None:
        await self._clients.aclose()

    @property
    def url(self) -> str:
        """A door; another one each time."""
        return next(self._urls)

    def deeds(self, minutes: float, only: str | None) -> Iterator[Deed]:
        """Return what happens: everything in turn, each time in another order."""
        ends_at = time.monotonic() + 60 * minutes
        while time.monotonic() < ends_at:
            names = [each for each in self._deeds.all if only is None or only in each]
            for name in self._random.sample(names, len(names)):
                if time.monotonic() < ends_at:
                    yield self.deed(name)

    def deed(self, name: str) -> Deed:
        """Return what does this, and repairs it."""
        return partial(self._do, name)

    def _do(self, name: str) -> Restart:
        begun_s = time.time()
        _say(f"\n{time.strftime('%H:%M:%S')} {name}")
        self.run(self._deeds.do(name))
        self.happened[name] += 1
        return Restart(begun_s, time.time())


@contextmanager
def hour(home: Path, seed: int, store: str) -> Iterator[Hour]:
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    thread = Thread(target=loop.run_forever)
    thread.start()
    found = Hour(loop, seed, store)
    try:
        found.run(found.set_up(home, stack))
        yield found
        found.run(found.clients_have_heard_everything())
    finally:
        found.run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def wrongs(story: Story, happened: int) -> list[str]:
    """Return what no client may see, however much happens."""
    found = []
    named = {name for name in story.ends() if name.endswith(", named")}
    found += [each for each in story.misses() if each.partition(", published")[0] in named]
    found += [
        f"{name}: {sessions} sessions"
        for name, sessions in story.ends().items()
        if (name in named and sessions != 1) or sessions > 1 + 3 * happened
    ]
    others = [each for each in story.disorder() if each.partition(", published")[0] not in named]
    return [*found, *others]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.hour", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--store", choices=("cluster", "one"), default="cluster")
    parser.add_argument("--only", help="what happens: all with this in their names")
    parser.add_argument("--home", type=Path, help="where logs stay")
    parser.add_argument("--bare", action="store_true", help="without stock clients")
    given = parser.parse_args()
    own_network.enter("tests.chaos.hour")
    if own_network.is_own():
        own_network.set_up()
    home = given.home or Path(tempfile.mkdtemp(prefix="holdfast-hour-"))
    home.mkdir(parents=True, exist_ok=True)
    _say(f"seed {given.seed}, {given.store}, logs in {home}")
    if given.bare:
        with hour(home, given.seed, given.store) as found:
            for deed in found.deeds(given.minutes, given.only):
                deed()
        _say(f"{PEOPLE} people missed nothing")
        return 0
    with hour(home, given.seed, given.store) as found:
        story = Story(
            *(found, home, STOCK),
            rates=RATES,
            is_durable=True,
            limit_s=60 * given.minutes + _STEP_LIMIT_S + _END_S,
        )
        story.play(found.deeds(given.minutes, given.only))
    _say(story.figures())
    for name, times in sorted(found.happened.items()):
        _say(f"{times:4} {name}")
    for name, sessions in story.ends().items():
        _say(f"{sessions:4} sessions of {name}")
    said = wrongs(story, found.happened.total())
    _say(f"{PEOPLE} people missed nothing; load {os.getloadavg()[0]:.0f}")
    _say("\n".join(said) or "no session with a name has noticed anything")
    return 1 if said else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
