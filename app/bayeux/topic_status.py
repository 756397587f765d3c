"""The status of topics, for whoever asks: clients by a service, operators by REST and commands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from holdfast.bayeux.codec import Json
from holdfast.bayeux.server_state import ServerState
from holdfast.delivery.topics import Topic


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic, with its configuration and what its state follows from."""

    channel: str
    state: str
    destroy_delay_ms: int
    is_readonly: bool
    # Messages in its history, entries in queues, and exact subscriptions.
    kept: int
    queued: int
    subscribers: int

    def to_json(self) -> Json:
        """Return the status as clients receive it."""
        return {
            "channel": self.channel,
            "state": self.state,
            "destroyDelay": self.destroy_delay_ms,
            "readonly": self.is_readonly,
            "kept": self.kept,
            "queued": self.queued,
            "subscribers": self.subscribers,
        }


def status_of(state: ServerState, topic: Topic) -> TopicStatus:
    """Return the status of a topic."""
    config = topic.config
    return TopicStatus(
        topic.name,
        topic.state.value,
        config.destroy_delay_ms,
        config.is_readonly,
        topic.kept,
        topic.queued,
        len(state.routes.subscribers(topic.name)),
    )


def page_of(topics: Iterable[Topic], after: str, limit: int) -> tuple[Sequence[Topic], str | None]:
    """Return the first topics by name, behind this one; with more, the name to go on from."""
    fit = [topic for topic in topics if topic.name > after]
    found = nsmallest(limit + 1, fit, key=_name_of)
    return found[:limit], found[limit - 1].name if len(found) > limit else None


def _name_of(topic: Topic) -> str:
    return topic.name
