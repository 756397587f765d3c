"""What several workers inherit from those before them."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from holdfast.compose.placement import placed
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.supervisor.control import CONTROL, LINK, LOCK
from tests.web.forwarding.workers import Worker


class FirstOfSeveral(Succession):
    """Notes what is kept for later servers, and what of it is kept before others are started."""

    is_supervised = True

    def __init__(self) -> None:
        super().__init__()
        self.kept: set[str] = set()
        self.given: set[str] = set()

    def keep(self, name: str, descriptor: int) -> None:
        self.kept.add(name)

    def listening(self, workers: int, links: str, shards: int = 0) -> None:
        self.given = {*self.kept}


async def test_the_first_gives_all_that_later_servers_inherit_before_others_start(
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"port": 0, "data": tmp_path / "data", "journal": False}
    settings = Settings(**given)
    first = FirstOfSeveral()
    async with AsyncExitStack() as stack:
        begun = [
            Worker(settings, placed(settings, number, 2), succession)
            for number, succession in enumerate((first, Succession()))
        ]
        for each in begun:
            stack.push_async_callback(each.ended)
            stack.callback(each.stop)
        for each in begun:
            await each.started()
    # If it dies before it is ready, nothing of it is lost.
    assert first.given == first.kept == {"main.0", LOCK, LINK, CONTROL}
