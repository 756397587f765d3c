"""The port to the shards that have subjects, and to calls between shards."""

from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_call import ShardCall


class HomesPort(Protocol):
    """Knows which shard has what, and sends calls there: each is done once at most."""

    def home_of_subject(self, subject: str, /) -> int | None:
        """Return the shard that has the sessions and the queue of a subject; None if this one."""
        ...

    def home_of(self, channel: str, /) -> int | None:
        """Return the shard that orders the channel; None if it is this one, or if none does."""
        ...

    def is_topic(self, channel: str, /) -> bool:
        """Return whether any shard has said that the channel is a topic, although no rule does."""
        ...

    def homes_of(self, pattern: str, /) -> Sequence[int | None]:
        """Return the shards that may order channels of the pattern; None stands for this one.

        It also stands for channels that no shard orders.
        """
        ...

    def home_of_guest(self, shard: int, /) -> int | None:
        """Return the shard that gave a session without a subject its name; None if this one.

        A shard that does not exist has given none: then None, too.
        """
        ...

    def home_of_bucket(self, bucket: int, /) -> int | None:
        """Return the shard that has the sessions in a bucket; None if this one."""
        ...

    @property
    def others(self) -> Sequence[int]:
        """The numbers of all other shards."""
        ...

    def may_send(self, shard: int, /) -> bool:
        """Return whether the shard can be sent calls now."""
        ...

    def steady_s(self) -> float:
        """Return the seconds of a clock that is never set and never stands still."""
        ...

    def heard_at(self, shard: int, /) -> float:
        """Return up to when this shard has everything that the shard had told, by that clock."""
        ...

    def send(
        self, shard: int, what: str, data: bytes, done: Callable[[bytes | None], None], /
    ) -> None:
        """Send a call that is done however late.

        `done` is called in a later turn: with the answer, or with None if there is none within
        some seconds. Then the call may have been done, or be done later.
        """
        ...

    def answer(self, call: ShardCall, answer: bytes, /) -> None:
        """Answer a call that has no stored effect.

        The store gets the answer and forgets the call in one step, once it is available.
        """
        ...

    def answer_behind(self, call: ShardCall, answer: bytes, /) -> None:
        """Answer such a call behind everything that was published in this shard so far."""
        ...

    def has_answered(self, message: Message, /) -> None:
        """Take note that what stored the message has answered the call for it: see `Effect`."""
        ...
