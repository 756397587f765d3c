"""The status of topics, for clients by a service and for operators by REST and commands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from orjson import loads

from holdfast.bayeux.publish.topic_effects import depth_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.channel_rules import ChannelRules
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.sorted_names import Look, SortedNames
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.histories import MOST_LOOKS
from holdfast.delivery.routing.routes import Routes
from holdfast.delivery.shared_queues.work_queues import WorkQueues
from holdfast.delivery.topics.configured import Topic, Topics
from holdfast.delivery.topics.states import TopicState

# How many names are found or skipped between two checks of the turn budget.
_FEW: Final = 50


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic, with its configuration and the conditions that determine its state."""

    channel: str
    state: TopicState
    # How long it stays unreferenced, in ms; -1 means until it is erased.
    destroy_delay: int
    readonly: bool
    # How many messages its history keeps.
    history: int
    # Messages in its history, entries in queues, messages in its work queue, and exact
    # subscriptions.
    kept: int
    queued: int
    work: int
    subscribers: int

    def to_json(self) -> Json:
        """Return the status in the form that clients receive."""
        return {
            "channel": self.channel,
            "state": self.state.value,
            "destroyDelay": self.destroy_delay,
            "readonly": self.readonly,
            "history": self.history,
            "kept": self.kept,
            "queued": self.queued,
            "work": self.work,
            "subscribers": self.subscribers,
        }


class TopicStatuses:
    """Computes the status of topics."""

    def __init__(
        self,
        topics: Topics,
        rules: ChannelRules,
        work: WorkQueues[Session],
        routes: Routes[Session],
    ) -> None:
        self._topics = topics
        self._rules = rules
        self._work = work
        self._routes = routes

    def of_all(self, names: Iterable[str]) -> list[TopicStatus]:
        """Return the status of each topic."""
        found = map(self._topics.get, names)
        return [self.of(topic) for topic in found if topic is not None]

    def of(self, topic: Topic) -> TopicStatus:
        """Return the status of a topic."""
        config = topic.config
        depth = depth_of(self._rules.named(topic.name), config)
        worker = self._work.of(topic.name)
        elsewhere, subscribers = self._topics.elsewhere, len(self._routes.subscribers(topic.name))
        if elsewhere is not None:
            subscribers += elsewhere.subscribers(topic.name)
        return TopicStatus(
            topic.name,
            topic.state,
            config.destroy_delay_ms,
            config.is_readonly,
            0 if depth is None else depth.entries,
            topic.kept,
            topic.queued + topic.elsewhere,
            0 if worker is None else worker.queue.count,
            subscribers,
        )


def page_of(
    looks: Iterable[Look], limit: int, most: int = MOST_LOOKS
) -> tuple[list[str], str | None]:
    """Return the first names; if there may be more, also the name to continue after."""
    names: list[str] = []
    last = ""
    for looked, (name, is_covered) in enumerate(looks):
        if len(names) == limit or looked == most:
            return names, last
        last = name
        if is_covered:
            names.append(name)
    return names, None


class NamePage:
    """A page of the names that a pattern matches, found a few at a time.

    Args:
        after: The name to continue after, or an empty string.
        limit: How many names the page may have.
    """

    def __init__(self, names: SortedNames, pattern: Channel, after: str, limit: int) -> None:
        self._names = names
        self._pattern = pattern
        self._left = limit
        # The name to continue after; None if there are no more names.
        self.next: str | None = after

    def __iter__(self) -> Iterator[list[str]]:
        """Yield some names. Between two steps, names may be added and removed."""
        looks = MOST_LOOKS
        while self.next is not None and self._left and looks > 0:
            few = min(_FEW, looks)
            found, self.next = page_of(
                self._names.covered_by(self._pattern, self.next), min(few, self._left), few
            )
            self._left -= len(found)
            looks -= few
            yield found


def event_of(node: Node, message: Message) -> Json:
    """Return a message from a history as the event that receivers would get."""
    event: Json = loads(message.wire)
    delivery = {
        "id": node.id_of(message.id),
        "state": "OK",
        "sender": message.sender,
        "rcvTimestamp": str(message.id),
        "priority": message.priority,
    }
    if message.properties is not None:
        delivery["properties"] = message.properties
    event["ext"] = {**event.get("ext", {}), "delivery": delivery}
    return event
