"""The parts that a server has because there are others. A server alone does not load them."""

from typing import TYPE_CHECKING

from holdfast.bayeux.publish.among_shards import AmongShards
from holdfast.bayeux.publish.from_others import FromOthers
from holdfast.bayeux.publish.requests_everywhere import RequestsEverywhere
from holdfast.bayeux.services.far_presence import FarPresence
from holdfast.bayeux.services.far_subjects import FarSubjects
from holdfast.bayeux.services.far_topics import FarTopics
from holdfast.bayeux.subscribe.far_histories import FarHistories
from holdfast.bayeux.subscribe.histories_at_home import HistoriesAtHome

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.bayeux.far_work.everywhere import WorkEverywhere
    from holdfast.bayeux.publish.event import Encoder
    from holdfast.bayeux.publish.point_to_point import PointToPoint
    from holdfast.bayeux.sessions.life import SessionLife
    from holdfast.bayeux.state.server_state import ServerState
    from holdfast.delivery.ports.neighbours import Neighbours


class FarParts:
    """What this shard knows of others, and does for them."""

    def __init__(
        self,
        state: "ServerState",
        life: "SessionLife",
        neighbours: "Neighbours",
        *,
        ptp: "PointToPoint",
        encoder: "Encoder",
    ) -> None:
        homes, others = neighbours.homes, neighbours.others
        self.neighbours = neighbours
        self.requests = RequestsEverywhere(state, homes)
        self.from_others = FromOthers(state, self.requests)
        self.topics = FarTopics(state, life.topics, homes, others)
        self.histories = FarHistories(state, homes, self.from_others.tap)
        self.subjects = FarSubjects(state, homes)
        self.presence = FarPresence(state, homes, others)
        self.work = _work(state, neighbours, self.requests) if state.work.is_used else None
        HistoriesAtHome(state, homes)
        # These four are circles: each of the parts here calls the one that it is given to.
        state.requests.elsewhere, state.topics.elsewhere = self.requests, self.topics
        state.work.far, state.presence_events.tell = self.work, self.presence.changed
        ticking: list[Callable[[float, int], None]] = [self.presence.tick, self.topics.tick]
        if self.work is not None:
            ticking.append(self.work.tick)
        self.publishing = AmongShards(
            *(state, ptp, encoder, neighbours), requests=self.requests, counts=self.topics
        )
        self.ticking = [*ticking, self.publishing.made.tick]

    def go_on(self) -> None:
        """Go on with what an earlier process had: its sessions are restored."""
        self.requests.asking.go_on()
        if self.work is not None:
            self.work.go_on()


def _work(
    state: "ServerState", neighbours: "Neighbours", requests: RequestsEverywhere
) -> "WorkEverywhere":
    from holdfast.bayeux.far_work.everywhere import WorkEverywhere

    return WorkEverywhere(state, neighbours.homes, neighbours.others, requests)
