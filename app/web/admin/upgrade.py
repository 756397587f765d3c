"""The upgrade of the store to the newest layout, which an operator finishes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from holdfast.store.format.layouts import LAYOUT, CurrentLayout, later_than, readers_of
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.route import route


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The layout of the store, and what finishing the upgrade changes."""

    finished: Annotated[bool, Field(description="Whether the store is in the newest layout.")]
    layout: Annotated[int, Field(ge=1, description="The layout of the store.")]
    newest: Annotated[int, Field(ge=1, description="The newest layout that this release knows.")]
    releases: Annotated[
        str, Field(description="The earlier releases that read the store; empty if there are none.")
    ]
    changes: Annotated[list[str], Field(description="What finishing the upgrade changes.")]


class UpgradeResource:
    """Answers requests about the upgrade of the store.

    Args:
        finish: Puts the store into the newest layout. Raises `StoreUnavailable`.
    """

    def __init__(
        self, server: RunningServer, layout: CurrentLayout, finish: Callable[[], Awaitable[None]]
    ) -> None:
        self._server = server
        self._layout = layout
        self._finish = finish

    @route("GET", "/upgrade")
    async def upgrade(self) -> Upgrade:
        """Show the layout of the store, and what finishing the upgrade changes."""
        return self._state()

    @route("POST", "/upgrade/finish")
    async def finish_upgrade(self, who: str) -> Upgrade:
        """Put the store into the newest layout; then earlier releases refuse it."""
        before = self._layout.number
        if before != LAYOUT:
            change = self._server.change(who, "upgrade.finish", "store", before=before, now=LAYOUT)
            async with change:
                await self._finish()
        return self._state()

    def _state(self) -> Upgrade:
        number = self._layout.number
        return Upgrade(
            finished=number == LAYOUT,
            layout=number,
            newest=LAYOUT,
            releases=readers_of(number),
            changes=[each.change for each in later_than(number)],
        )
