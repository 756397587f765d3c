"""An operator who goes back to the release that has left the store, for a while."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import orjson

from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.reply_errors import ScriptFailed
from holdfast.store.links.url import StoreUrl
from tests.simulation.faults import Stage
from tests.simulation.judges.excuses import GOING_BACK
from tests.simulation.judges.layouts import Layouts
from tests.simulation.process import Life, Process
from tests.simulation.server import Post

# How the last release opens a store, as it has said itself.
_RELEASE = Path(__file__).parents[1] / "store" / "releases" / "0.3.0.json"
_NAMESPACE = "holdfast"
# When the earlier release comes back, and for how long; and how often its operator kills servers.
_GOES_BACK_S, _STAYS_S, _KILLS = (2.0, 30.0), (0.1, 2.0), 0.3
# How long it looks for the store; and how often one looks there.
_PATIENCE_S, _LOOK_S = 5.0, 0.5


class FormerRelease:
    """Takes the place of all servers for a while, as when an operator goes back to it.

    It opens the store by its own script, if it reads that, and changes nothing else.
    """

    def __init__(self, stage: Stage, posts: Sequence[Post], truth: Layouts) -> None:
        self._stage = stage
        self._world = stage.world
        self._posts = posts
        self._truth = truth
        self.is_over = False

    def begin_in_time(self) -> None:
        """Come back at a time that the seed decides."""
        self._world.later(self._world.random.uniform(*_GOES_BACK_S), self._begin)

    def _begin(self) -> None:
        if any(post.is_restarting for post in self._posts):
            self._world.later(_LOOK_S, self._begin)
            return
        self._stage.excuses.add(GOING_BACK, self._world.now, inf)
        is_sudden = self._world.random.random() < _KILLS
        if is_sudden:
            self._stage.excuses.add("kill_server", self._world.now, 0.0)
        for post in self._posts:
            post.stop()
            if is_sudden:
                post.process.kill()
        self._open_when_ended()

    def _open_when_ended(self) -> None:
        if any(post.process.life is not Life.ENDED for post in self._posts):
            self._world.later(_LOOK_S, self._open_when_ended)
            return
        self._truth.former_looks()
        process = self._world.start(GOING_BACK, self._open)
        process.on_ended = self._leave

    async def _open(self, process: Process) -> None:
        """Open the store, if it can be reached."""
        meta = RedisKeys(_NAMESPACE).meta
        url = self._stage.site.url_of(0)
        assert url is not None
        reader = Reader(Primary(StoreUrl.of(url), meta))
        release = orjson.loads(_RELEASE.read_bytes())["open"]
        try:
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._open_with(reader, meta, release)
        finally:
            reader.close()
        await asyncio.sleep(random.uniform(*_STAYS_S))

    async def _open_with(self, reader: Reader, meta: str, release: dict[str, Any]) -> None:
        version = int(await reader.ask("HGET", meta, "version"))
        script, keys = "\n".join(release["script"]), release["keys"]
        own = [each.replace("{test}", f"{{{_NAMESPACE}}}") for each in keys]
        [reply] = await reader.attempt(("EVAL", script, len(own), *own, *release["args"]))
        refusal = str(reply) if isinstance(reply, ScriptFailed) else ""
        if refusal or isinstance(reply, list):
            self._truth.former_opened(version, release["args"][0], refusal)

    def _leave(self) -> None:
        for post in self._posts:
            post.start()
        self._stage.excuses.end(GOING_BACK, self._world.now)
        self.is_over = True


def watch(stage: Stage, truth: Layouts) -> None:
    """Look at the stores again and again."""
    truth.look()
    stage.world.later(_LOOK_S, partial(watch, stage, truth))
