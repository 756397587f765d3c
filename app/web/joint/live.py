"""The live figures of all shards, for clients that listen to them at any."""

from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.handlers import Ask
from holdfast.web.joint.asking import ROUTE, Json, Shards
from holdfast.web.joint.readings import figures
from holdfast.web.joint.rules import All

_ASK = Ask(ROUTE["figures"], {}, "reader")


class JointFigures:
    """Reads the figures of all shards; this one alone measures latencies while it is watched."""

    def __init__(self, shards: Shards, own: LiveFigures) -> None:
        self._shards, self._own = shards, own

    def watch(self, *, is_watched: bool) -> None:
        self._own.watch(is_watched=is_watched)

    async def read(self) -> Json:
        return await All(figures).answer(self._shards, _ASK)
