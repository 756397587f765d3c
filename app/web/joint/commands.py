"""Commands of operators over Bayeux, run in the shard that has what they are about."""

import asyncio
from collections.abc import Callable, Mapping

import orjson

from holdfast.bayeux.wire.command_refused import CommandRefused
from holdfast.web.admin.handlers import Ask
from holdfast.web.joint.asking import ROUTE, Json, Shards
from holdfast.web.joint.rules import Holder


class JointCommands:
    """Asks all shards for what is asked, and one for a change."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._tasks: set[asyncio.Task[None]] = set()

    def run_anywhere(
        self,
        given: Mapping[str, str],
        *,
        changes: bool,
        who: str,
        done: Callable[[Json | CommandRefused], None],
    ) -> None:
        """Run a command, and call `done` with the answer or the refusal."""
        task = asyncio.get_running_loop().create_task(self._run(_asked(given, who, changes), done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, ask: Ask, done: Callable[[Json | CommandRefused], None]) -> None:
        try:
            answer: Json | CommandRefused = await Holder().answer(self._shards, ask)
        except CommandRefused as refused:
            answer = refused
        if isinstance(answer, dict):
            answer = {name: value for name, value in answer.items() if value is not None}
        done(answer)

    def close(self) -> None:
        """Give up what is not answered yet."""
        for task in self._tasks:
            task.cancel()


def _asked(given: Mapping[str, str], who: str, changes: bool) -> Ask:
    if changes:
        return Ask(ROUTE["command"], {}, who, orjson.dumps(given))
    return Ask(ROUTE["question"], {"command": given["command"]}, who)
