"""Topics count the queues and the history that have their messages."""

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.topics.configured import Topic


class OfTopic(MessageRecord):
    """The record of a message of a topic. Copies of the message share it."""

    __slots__ = ("topic",)

    def __init__(self, topic: Topic) -> None:
        self.topic = topic

    def counts_queues(self) -> bool:
        return True

    def published(self, message: Message) -> None:
        # A draft becomes a topic now.
        count_for(self.topic.publish(), message)

    def entered_queues(self, count: int) -> None:
        self.topic.refer(count)

    def left_queues(self, count: int) -> None:
        self.topic.release(count)

    def entered_history(self) -> None:
        self.topic.keep()

    def left_history(self) -> None:
        self.topic.forget()


def count_for(topic: Topic, message: Message) -> None:
    """Let the topic count the queues that have the message."""
    message.records = with_record(message.records, OfTopic(topic))


def topic_of(message: Message) -> Topic | None:
    """Return the topic that counts the message. Most channels are not topics."""
    record = record_of(message.records, OfTopic)
    return None if record is None else record.topic


def is_erased(message: Message) -> bool:
    """Whether the topic of the message was erased by force after it was published."""
    topic = topic_of(message)
    return topic is not None and message.id < topic.discards_before
