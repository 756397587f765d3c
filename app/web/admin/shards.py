"""The worker of each shard, as this one sees it: itself in full, others from outside."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.ports.store_port import StorePort
from holdfast.supervisor.control import Ends

if TYPE_CHECKING:
    from holdfast.web.admin.now_views import BackendNow, ShardNow, StoreState

_MS_PER_S = 1000


def state_of(store: StorePort) -> "StoreState":
    """Return whether a store takes messages."""
    if store.is_full:
        return "full"
    return "available" if store.takes_messages else "unavailable"


@dataclass(frozen=True, slots=True)
class ShardViews:
    """Looks at the shards of this deployment.

    Args:
        number: This shard.
        ends: Returns how often the processes of each shard have ended, and how the last one did.
        started: When this process began, in milliseconds.
        away_s: Returns for how many seconds others have had no link to this one, by number.
        hosts: Returns the host that had each shard last, as far as it is known.
    """

    state: ServerState
    number: int
    others: tuple[int, ...]
    ends: Callable[[], Mapping[int, Ends]]
    started: int
    away_s: Callable[[], Mapping[int, float]]
    hosts: Callable[[], Mapping[int, str]]

    def backend(self) -> "list[BackendNow]":
        """Return this worker's questions to the backend if they fail, or wait."""
        figures = self.state.backend
        if figures is None or not (figures.is_broken or figures.waiting):
            return []
        from holdfast.web.admin.now_views import BackendNow

        return [
            BackendNow(
                shard=self.number,
                state="broken" if figures.is_broken else "answers",
                since=figures.broken_ms,
                open=figures.open,
                waiting=figures.waiting,
                failure=figures.failure,
                failed=figures.failed_ms,
            )
        ]

    def read(self) -> "list[ShardNow]":
        """Return what this worker knows of each shard, by number."""
        from holdfast.web.admin.now_views import ShardNow

        state, away_s, ends = self.state, self.away_s(), self.ends()
        hosts = self.hosts()
        others, now = state.hub.others, state.node.now_ms()
        behind_s: Mapping[int, float] = {} if others is None else others.figures().behind_s
        own = ShardNow(
            shard=self.number,
            host=hosts.get(self.number),
            state="serving",
            since=self.started,
            **_restarts(ends, self.number),
            pid=os.getpid(),
            sessions=len(state.sessions),
            store=state_of(state.store),
            links=len(self.others) - len(away_s),
            # Only others know.
            behind_ms=None,
        )
        found = [own]
        for shard in self.others:
            gone_s, waits_s = away_s.get(shard, 0.0), behind_s.get(shard)
            found.append(
                ShardNow(
                    shard=shard,
                    host=hosts.get(shard),
                    state="away" if gone_s else "serving",
                    since=now - round(gone_s * _MS_PER_S) if gone_s else None,
                    **_restarts(ends, shard),
                    pid=None,
                    sessions=None,
                    store=None,
                    links=None,
                    behind_ms=None if waits_s is None else round(waits_s * _MS_PER_S),
                )
            )
        return sorted(found, key=lambda each: each.shard)


def _restarts(ends: Mapping[int, Ends], shard: int) -> dict[str, Any]:
    count, last = ends.get(shard, Ends())
    return {"restarts": count, "last_end": last or None}
