"""Which receivers of a request may answer it. A subscription may exclude that."""

from collections.abc import Set

from holdfast.delivery.basics.channels import lookups
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, ReceiverView
from holdfast.delivery.queues.receivers import Receiver


class _Silence:
    """The record of a receiver with subscriptions on which it never answers requests."""

    __slots__ = ("patterns",)

    def __init__(self) -> None:
        self.patterns: set[str] = set()


def may_answer(receiver: ReceiverView, message: Message) -> bool:
    """Whether it counts as a responder to the request that it gets."""
    silence = record_of(receiver.records, _Silence)
    if silence is None or message.is_addressed_to(receiver.key):
        return True
    answering = receiver.subscriptions - silence.patterns
    return not answering.isdisjoint(lookups(message.channel))


def silent_on(receiver: ReceiverView) -> Set[str]:
    """Return the subscriptions because of which the receiver never answers."""
    silence = record_of(receiver.records, _Silence)
    return frozenset() if silence is None else silence.patterns


def be_silent_on(receiver: Receiver, pattern: str) -> None:
    """Record that the receiver never answers because of this subscription."""
    silence = record_of(receiver.records, _Silence)
    if silence is None:
        silence = _Silence()
        receiver.records = with_record(receiver.records, silence)
    silence.patterns.add(pattern)


def end_silence_on(receiver: Receiver, pattern: str) -> None:
    """Record that this subscription is over, or that the receiver answers because of it."""
    silence = record_of(receiver.records, _Silence)
    if silence is not None:
        silence.patterns.discard(pattern)
